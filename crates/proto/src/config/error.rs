//! Why a setting was not taken.
use crate::errors::sentences;
use alloc::string::String;

/// Why a setting was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingError {
    /// No such setting.
    Unknown,
    /// Not a value of this setting; the text says what is.
    Invalid(String),
}

sentences! {
    SettingError {
        SettingError::Unknown => "there is no such setting; `Config::all` lists every name",
        SettingError::Invalid(sentence) => sentence,
    }
}
