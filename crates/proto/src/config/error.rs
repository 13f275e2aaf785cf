//! Why a setting was not taken.
use alloc::string::String;
use core::fmt;

/// Why a setting was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingError {
    /// No such setting.
    Unknown,
    /// Not a value of this setting; the text says what is.
    Invalid(String),
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingError::Unknown => f.write_str("there is no such setting; `Config::all` lists every name"),
            SettingError::Invalid(sentence) => f.write_str(sentence),
        }
    }
}

impl core::error::Error for SettingError {}
