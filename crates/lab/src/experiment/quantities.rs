//! Quantities as fields of a file.

use super::units;
use core::fmt::Display;
use core::str::FromStr;
use core::time::Duration;
use serde::{Deserialize, Deserializer};
use toml::Value;

macro_rules! quantity {
    ($name:ident, $of:ty, $parse:path) => {
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub(super) struct $name(pub(super) $of);

        impl FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<$name, String> {
                $parse(text).map($name)
            }
        }
    };
}

quantity!(Time, Duration, units::duration);
quantity!(Size, u64, units::bytes);
quantity!(Rate, u64, units::rate);
quantity!(Share, f64, units::percent);

pub(super) fn required<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(de: D) -> Result<T, D::Error> {
    let text = match Value::deserialize(de)? {
        Value::String(text) => text,
        // A number without its unit is told which units there are.
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        _ => return Err(serde::de::Error::custom("expected a text, such as \"35ms\"")),
    };
    text.parse().map_err(serde::de::Error::custom)
}

pub(super) fn optional<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(
    de: D,
) -> Result<Option<T>, D::Error> {
    required(de).map(Some)
}
