//! Values of `--so_flags`: `name=value`, separated by commas.

use std::net::IpAddr;

/// The host that scripts see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flags {
    /// Its address (`local=`).
    pub local: IpAddr,
    /// The MTU of its only link (`mtu=`).
    pub mtu: usize,
    /// Seed of its initial sequence numbers and ports (`seed=`).
    pub seed: u64,
}

impl Default for Flags {
    fn default() -> Flags {
        Flags { local: IpAddr::from([192, 168, 0, 1]), mtu: 1500, seed: 1 }
    }
}

impl Flags {
    /// Reads the text. `family=` is allowed and says nothing that the address does not.
    ///
    /// # Errors
    /// A sentence about what is wrong.
    pub fn parse(text: &str) -> Result<Flags, String> {
        let mut flags = Flags::default();
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            let (name, value) = part.split_once('=').ok_or(format!("`{part}` is not name=value"))?;
            let refused = |_| format!("`{value}` is no value of `{name}`");
            match name.trim() {
                "local" => flags.local = value.trim().parse().map_err(|_| refused(()))?,
                "mtu" => {
                    let mtu = value.trim().parse().map_err(|_| refused(()))?;
                    flags.mtu = Some(mtu).filter(|mtu| (68..=65_535).contains(mtu)).ok_or(refused(()))?;
                }
                "seed" => flags.seed = value.trim().parse().map_err(|_| refused(()))?,
                "family" => {}
                _ => return Err(format!("`{name}` is none of local, mtu, seed, family")),
            }
        }
        Ok(flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_runner_passes() {
        let flags = Flags::parse("family=6,local=fd3d:0a0b:17d6::1,mtu=1520").unwrap();
        assert_eq!((flags.local.to_string().as_str(), flags.mtu), ("fd3d:a0b:17d6::1", 1520));
        assert_eq!(Flags::parse(""), Ok(Flags::default()));
        for wrong in ["mtu=20", "mtu", "local=x", "colour=blue"] {
            assert!(Flags::parse(wrong).is_err(), "{wrong}");
        }
    }
}
