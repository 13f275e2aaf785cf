//! `firstbyte key`: makes, shows and checks cookie keys, in files with mode 0600. Never prints a
//! key.
use crate::failure::Failure;
use crate::output::write_secret;
use crate::serve::key::read;
use crate::terminal::print;
use clap::{Args, Subcommand};
use firstbyte::KeyRing;
use firstbyte::fast_open::{CookieCheck, Key};
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wire::{Addr, Cookie};

/// Make, show and check Fast Open cookie keys
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    firstbyte key new keys && firstbyte serve --key-file keys\n  \
    firstbyte key rotate keys      then, as root: cat keys > \
    /proc/sys/net/ipv4/tcp_fastopen_key\n  \
    firstbyte key check keys --client 192.0.2.7 --server 192.0.2.1 --cookie 9a8f0e6b1c2d3e4f\n\n\
    Files have mode 0600 and Linux's format. Keys are never printed: a fingerprint tells whether \
    two files have the same key,\n\
    and does not reveal the key.\n\
    Every server behind one name must have the same keys. Rotate the keys on all servers before \
    clients connect:\n\
    the old key stays valid as the backup.")]
pub(crate) struct KeyArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Make a random key in a new file
    New {
        /// File to create
        file: PathBuf,
    },
    /// Make a new primary key; the old one becomes the backup
    Rotate {
        /// Key file
        file: PathBuf,
    },
    /// Show the fingerprints of the keys
    Show {
        /// Key file
        file: PathBuf,
    },
    /// Tell whether a cookie was made with a key of the file
    Check {
        /// Key file
        file: PathBuf,
        /// Address of the client, as the server sees it
        #[arg(long, value_name = "ADDRESS")]
        client: IpAddr,
        /// Address of the server
        #[arg(long, value_name = "ADDRESS")]
        server: IpAddr,
        /// Cookie, as 16 hexadecimal digits
        #[arg(long, value_name = "HEX", value_parser = cookie)]
        cookie: Cookie,
    },
}

/// Runs the verb.
pub(crate) fn run(args: &KeyArgs) -> Result<ExitCode, Failure> {
    match &args.verb {
        Verb::New { file } => {
            let ring = KeyRing::new(random()?);
            if file.symlink_metadata().is_ok() {
                return Err(Failure::failed(format!(
                    "{} already exists; change it with `firstbyte key rotate`",
                    file.display()
                )));
            }
            write(file, &ring)?;
            print(&shown(&ring))
        }
        Verb::Rotate { file } => {
            let mut ring = read(file)?;
            ring.rotate(random()?);
            write(file, &ring)?;
            print(&shown(&ring))
        }
        Verb::Show { file } => print(&shown(&read(file)?)),
        Verb::Check { file, client, server, cookie } => {
            if client.is_ipv4() != server.is_ipv4() {
                return Err(Failure::usage("expected a client and a server of the same IP version"));
            }
            let which = which(&read(file)?, *client, *server, cookie);
            print(&format!("{which}\n"))?;
            Ok(ExitCode::from(u8::from(which == OTHER)))
        }
    }
}

const OTHER: &str = "neither key";

/// Names the key that made a cookie.
pub(crate) fn which(ring: &KeyRing, client: IpAddr, server: IpAddr, cookie: &Cookie) -> &'static str {
    match ring.check(Addr::from(client), Addr::from(server), cookie) {
        CookieCheck::Primary => "the primary key",
        CookieCheck::Backup => "the backup key",
        CookieCheck::Invalid => OTHER,
    }
}

fn shown(ring: &KeyRing) -> String {
    let mut text = format!("primary {}\n", fingerprint(ring.primary()));
    if let Some(backup) = ring.backup() {
        text += &format!("backup  {}\n", fingerprint(backup));
    }
    text
}

/// Returns a fingerprint: the cookie for a pair of addresses that no connection has. The key cannot
/// be derived from it.
pub(crate) fn fingerprint(key: Key) -> String {
    let nobody = Addr::from(Ipv4Addr::UNSPECIFIED);
    KeyRing::new(key).cookie(nobody, nobody).to_string()
}

/// Makes a random key.
pub(crate) fn random() -> Result<Key, Failure> {
    let mut bytes = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| Failure::file("read", Path::new("/dev/urandom"), &error))?;
    Ok(Key::from_bytes(bytes))
}

fn write(path: &Path, ring: &KeyRing) -> Result<(), Failure> {
    write_secret(path, &format!("{ring}\n"))
}

/// Parses the hexadecimal digits of a cookie.
pub(crate) fn cookie(text: &str) -> Result<Cookie, String> {
    let wrong = || "expected a cookie of 8 to 32 hexadecimal digits, two for each byte".to_owned();
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let bytes: Option<Vec<u8>> =
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect();
    bytes.and_then(|bytes| Cookie::new(&bytes)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_made_rotated_and_checked_and_never_shown() {
        let path = std::env::temp_dir().join(format!("firstbyte-keys-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        let verb = |verb| run(&KeyArgs { verb });
        verb(Verb::New { file: path.clone() }).unwrap();
        assert!(verb(Verb::New { file: path.clone() }).unwrap_err().message().contains("already exists"));
        let first = read(&path).unwrap();
        verb(Verb::Rotate { file: path.clone() }).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let second = read(&path).unwrap();
        assert_eq!(second.backup().map(Key::to_bytes), Some(first.primary().to_bytes()));
        assert!(second.primary().to_bytes() != first.primary().to_bytes());
        let (client, server): (IpAddr, IpAddr) = ([192, 0, 2, 7].into(), [192, 0, 2, 1].into());
        let old = first.cookie(client.into(), server.into());
        assert_eq!(cookie(&old.to_string()), Ok(old));
        assert_eq!(which(&second, client, server, &old), "the backup key");
        assert_eq!(which(&second, server, client, &old), OTHER);
        assert!(!shown(&second).contains(&second.primary().to_string()));
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_is_no_cookie_is_refused() {
        for wrong in ["", "0", "xx", "00112", "é0", "00"] {
            assert!(cookie(wrong).is_err(), "{wrong}");
        }
    }
}
