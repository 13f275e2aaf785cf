//! `prio`: options.
use super::error::{TcError, usage};
use super::units;
use super::words::{Words, unknown};
use crate::PrioConfig;
use alloc::string::String;

pub(super) fn parse(mut words: Words<'_>) -> Result<PrioConfig, TcError> {
    let mut config = PrioConfig::default();
    let mut mapped = 0;
    let mut in_map = false;
    while let Some(word) = words.next() {
        match word {
            "bands" => config.bands = words.number("bands")?,
            "priomap" if in_map => return Err(usage("Error: duplicate priomap")),
            "priomap" => in_map = true,
            _ if !in_map => return Err(unknown(word)),
            _ => {
                let band = units::number::<u8>(word).ok_or_else(|| usage("Illegal \"priomap\" element"))?;
                if band > config.bands {
                    return Err(usage("\"priomap\" element is out of bands"));
                }
                let place = config.priomap.get_mut(mapped);
                *place.ok_or_else(|| usage("\"priomap\" index > TC_PRIO_MAX=15"))? = band;
                mapped += 1;
            }
        }
    }
    Ok(config)
}

pub(super) fn show(config: &PrioConfig) -> String {
    let map: String = config.priomap.iter().map(|band| format!(" {band}")).collect();
    format!("bands {} priomap{map}", config.bands)
}
