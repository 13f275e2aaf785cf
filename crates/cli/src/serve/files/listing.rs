//! Lists a folder as a page (`--listing`).
//!
//! Names that begin with a dot, and files that are not served, are left out.
use super::beneath::{Folder, Patience};
use crate::escape;
use chrono::{DateTime, Utc};
use rustix::fs::{AtFlags, Dir, FileType, statat};
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

/// Most names on a page.
const NAMES_MAX: usize = 10_000;

/// A file or a folder in the listing. Folders come first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    is_file: bool,
    name: OsString,
    len: u64,
    modified: SystemTime,
}

/// Returns the page of a folder. Reads the disk.
pub(crate) fn page(folder: &Folder, path: &Path, directory: &File, uri_path: &str) -> io::Result<String> {
    let mut entries = Vec::new();
    let mut is_cut = false;
    for found in Dir::read_from(directory)? {
        let found = found?;
        let name = OsStr::from_bytes(found.file_name().to_bytes());
        if name.as_bytes().starts_with(b".") {
            continue;
        }
        if entries.len() == NAMES_MAX {
            is_cut = true;
            break;
        }
        entries.extend(entry(folder, path, directory, name));
    }
    entries.sort();
    Ok(render(uri_path, &entries, is_cut))
}

/// Returns what is served under a name; `None` for nothing.
fn entry(folder: &Folder, path: &Path, directory: &File, name: &OsStr) -> Option<Entry> {
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    let entry = |is_file, len, modified| Some(Entry { is_file, name: name.to_owned(), len, modified });
    if kind == FileType::RegularFile || kind == FileType::Directory {
        let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
        let modified = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        return entry(kind == FileType::RegularFile, u64::try_from(stat.st_size).unwrap_or(0), modified);
    }
    if kind != FileType::Symlink {
        return None;
    }
    // A link that leads outside is not served.
    let there = folder.open_beneath(&path.join(name), Patience::Any).ok()?.metadata().ok()?;
    let modified = there.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    (there.is_file() || there.is_dir()).then(|| entry(there.is_file(), there.len(), modified))?
}

fn render(uri_path: &str, entries: &[Entry], is_cut: bool) -> String {
    let title = text(&uri_path_as_text(uri_path));
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Index of {title}</title>\n\
         <style>body {{ font-family: sans-serif; margin: 2em }} td {{ padding: 0.1em 1.5em 0.1em 0 }}\n\
         td + td {{ text-align: right; white-space: nowrap }}</style>\n</head>\n<body>\n\
         <h1>Index of {title}</h1>\n<table>\n"
    );
    if !uri_path.trim_matches('/').is_empty() {
        page.push_str("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n");
    }
    for Entry { is_file, name, len, modified } in entries {
        let slash = if *is_file { "" } else { "/" };
        let (link, shown) = (percent_encoded(name), text(&name.to_string_lossy()));
        let len = if *is_file { len.to_string() } else { String::new() };
        let date = DateTime::<Utc>::from(*modified).format("%Y-%m-%d %H:%M:%S");
        _ = writeln!(
            page,
            "<tr><td><a href=\"{link}{slash}\">{shown}{slash}</a></td><td>{len}</td><td>{date}</td></tr>"
        );
    }
    page.push_str("</table>\n");
    if is_cut {
        _ = writeln!(page, "<p>Only {NAMES_MAX} names are shown.</p>");
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn uri_path_as_text(uri_path: &str) -> String {
    let decoded = super::percent_decoded(uri_path).unwrap_or_default();
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Escapes text for HTML. Control characters are shown.
fn text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in escape::line(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Encodes a name as a segment of a path: everything but the unreserved characters (RFC 3986 §2.3).
fn percent_encoded(name: &OsStr) -> String {
    let mut encoded = String::new();
    for byte in name.as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(*byte));
            }
            byte => _ = write!(encoded, "%{byte:02X}"),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn names_are_sorted_escaped_and_hidden_ones_left_out() {
        let outside = tempfile::tempdir().unwrap();
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for name in ["b.txt", "a&<b>\"'.txt", ".hidden", "c:d?#%.txt"] {
            std::fs::write(at(name), "four").unwrap();
        }
        std::fs::write(root.path().join(OsStr::from_bytes(b"\xff\n")), "").unwrap();
        std::fs::create_dir(at("z")).unwrap();
        symlink("b.txt", at("link")).unwrap();
        symlink(outside.path(), at("outside")).unwrap();
        symlink("gone", at("dangling")).unwrap();
        let folder = Folder::open(root.path()).unwrap();
        let directory = folder.open_beneath(Path::new("."), Patience::Any).unwrap();
        let page = page(&folder, Path::new("."), &directory, "/x%3Cy/").unwrap();
        let links: Vec<&str> =
            page.split("<a href=\"").skip(1).map(|rest| rest.split_once("</a>").unwrap().0).collect();
        assert_eq!(
            links,
            [
                "../\">../",
                "z/\">z/",
                "a%26%3Cb%3E%22%27.txt\">a&amp;&lt;b&gt;&quot;&#39;.txt",
                "b.txt\">b.txt",
                "c%3Ad%3F%23%25.txt\">c:d?#%.txt",
                "link\">link",
                "%FF%0A\">\u{fffd}\\u{a}",
            ]
        );
        assert!(page.contains("<title>Index of /x&lt;y/</title>"), "{page}");
        assert_eq!(page.matches("<td>4</td>").count(), 4, "{page}");
    }
}
