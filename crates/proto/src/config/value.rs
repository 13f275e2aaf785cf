//! Values of settings as text: numbers, switches, three sizes, times and choices.

use super::{AckHabit, CongestionControl, ReceiveAccounting, RttVariation, SettingKind, SynDataRoom};
use crate::port_set::PortSet;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

pub(crate) trait Value: Sized {
    const KIND: SettingKind;
    fn parse(text: &str) -> Result<Self, String>;
    fn show(&self) -> String;
}

impl Value for u32 {
    const KIND: SettingKind = SettingKind::Number;
    fn parse(text: &str) -> Result<u32, String> {
        let parsed = match text.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => text.parse(),
        };
        parsed.map_err(|_| format!("`{text}` is not a number from 0 to {}", u32::MAX))
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    const KIND: SettingKind = SettingKind::Switch;
    fn parse(text: &str) -> Result<bool, String> {
        match text {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(format!("`{text}` is neither 0 nor 1")),
        }
    }
    fn show(&self) -> String {
        u8::from(*self).to_string()
    }
}

/// Three sizes that do not decrease: `tcp_rmem`, `tcp_wmem`, `tcp_mem`.
impl Value for [u32; 3] {
    const KIND: SettingKind = SettingKind::Sizes;
    fn parse(text: &str) -> Result<[u32; 3], String> {
        let sizes = text.split_whitespace().map(u32::parse).collect::<Result<Vec<_>, _>>()?;
        match sizes[..] {
            [min, default, max] if min <= default && default <= max => Ok([min, default, max]),
            [_, _, _] => Err("the three sizes must not decrease".into()),
            _ => Err("three sizes are needed, as in `4096 131072 6291456`".into()),
        }
    }
    fn show(&self) -> String {
        format!("{} {} {}", self[0], self[1], self[2])
    }
}

impl Value for Duration {
    const KIND: SettingKind = SettingKind::Time;
    fn parse(text: &str) -> Result<Duration, String> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let number: u64 =
            digits.parse().map_err(|_| format!("`{text}` is not a time such as 60s, 200ms or 500us"))?;
        match &text[digits.len()..] {
            "" | "s" => Ok(Duration::from_secs(number)),
            "ms" => Ok(Duration::from_millis(number)),
            "us" => Ok(Duration::from_micros(number)),
            "ns" => Ok(Duration::from_nanos(number)),
            unit => Err(format!("`{unit}` is not a unit of time: use s, ms, us or ns")),
        }
    }
    fn show(&self) -> String {
        let nanos = self.as_nanos();
        match () {
            () if nanos.is_multiple_of(1_000_000_000) => self.as_secs().to_string(),
            () if nanos.is_multiple_of(1_000_000) => format!("{}ms", self.as_millis()),
            () if nanos.is_multiple_of(1_000) => format!("{}us", self.as_micros()),
            () => format!("{nanos}ns"),
        }
    }
}

/// Numbers and ranges between commas, in any order; nothing is no port.
impl Value for PortSet {
    const KIND: SettingKind = SettingKind::Ports;
    fn parse(text: &str) -> Result<PortSet, String> {
        let wrong = || format!("`{text}` is not a list of ports such as 8080,9148-9200");
        let port = |text: &str| text.parse::<u16>().map_err(|_| wrong());
        let mut ports = PortSet::default();
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let (low, high) = (port(low)?, port(high)?);
            if low > high {
                return Err(wrong());
            }
            ports.insert(low, high);
        }
        Ok(ports)
    }

    fn show(&self) -> String {
        let part =
            |(low, high): &(u16, u16)| if low == high { low.to_string() } else { format!("{low}-{high}") };
        self.ranges().iter().map(part).collect::<Vec<_>>().join(",")
    }
}

macro_rules! choice {
    ($type:ty { $($word:literal => $value:path),+ }) => {
        impl Value for $type {
            const KIND: SettingKind = SettingKind::Choice(&[$($word),+]);
            fn parse(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok($value),)+
                    _ => Err(format!("`{text}` is not one of: {}", [$($word),+].join(", "))),
                }
            }
            fn show(&self) -> String {
                match self { $($value => $word.to_string()),+ }
            }
        }

        impl $type {
            /// Every choice there is.
            pub const ALL: &[$type] = &[$($value),+];
        }
    };
}

choice!(SynDataRoom { "exact" => SynDataRoom::Exact, "reserve40" => SynDataRoom::Reserve40 });
choice!(CongestionControl { "reno" => CongestionControl::Reno, "cubic" => CongestionControl::Cubic, "vegas" => CongestionControl::Vegas, "tahoe" => CongestionControl::Tahoe, "bbr" => CongestionControl::Bbr });
choice!(RttVariation { "rfc6298" => RttVariation::Rfc6298, "windowed" => RttVariation::Windowed });
choice!(ReceiveAccounting { "payload" => ReceiveAccounting::Payload, "packets" => ReceiveAccounting::Packets });
choice!(AckHabit { "merge" => AckHabit::Merge, "quickstart" => AckHabit::QuickStart });
