//! Quantities as fields of a file.

use super::units;
use core::fmt::{self, Display};
use core::marker::PhantomData;
use core::str::FromStr;
use core::time::Duration;
use serde::de::{Error, Visitor};
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
        // A number without a unit gets an error that lists the units.
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        _ => return Err(serde::de::Error::custom("expected a string, such as \"35ms\"")),
    };
    text.parse().map_err(serde::de::Error::custom)
}

pub(super) fn optional<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(
    de: D,
) -> Result<Option<T>, D::Error> {
    required(de).map(Some)
}

/// A value parsed from words. In a list, an error points at the wrong element.
pub(super) struct Words<T>(pub(super) T);

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Words<T> {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Words<T>, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<T: FromStr<Err: Display>> Visitor<'_> for Reader<T> {
            type Value = Words<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text in quotes")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Words<T>, E> {
                text.parse().map(Words).map_err(E::custom)
            }
        }
        de.deserialize_str(Reader(PhantomData))
    }
}
