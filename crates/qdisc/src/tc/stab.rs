//! `stab`: options of a size table, before the discipline's kind.
use super::error::{TcError, usage};
use super::show::Detail;
use super::tbf::link_layer;
use super::units;
use super::words::Words;
use crate::{LinkLayer, SizeSpec};
use alloc::string::String;

/// Reads as many options as there are; the next word is the discipline's kind.
pub(super) fn parse(words: &mut Words<'_>) -> Result<SizeSpec, TcError> {
    let mut spec = SizeSpec::default();
    // tc puts the name where the value should stand.
    let bad = |name: &str| usage(format!("Error: argument \"invalid {name}\" is wrong: {name}"));
    while let Some(word) = words.peek() {
        match word {
            "mtu" | "mpu" | "tsize" | "overhead" | "linklayer" => words.next(),
            _ => return Ok(spec),
        };
        let value = words.value()?;
        match word {
            "mtu" => spec.mtu = units::number(value).ok_or_else(|| bad("mtu"))?,
            "mpu" => spec.mpu = units::number(value).ok_or_else(|| bad("mpu"))?,
            "tsize" => spec.tsize = units::number(value).ok_or_else(|| bad("tsize"))?,
            "overhead" => spec.overhead = value.parse().map_err(|_| bad("overhead"))?,
            _ => spec.link_layer = link_layer(value).ok_or_else(|| bad("linklayer"))?,
        }
    }
    Ok(spec)
}

pub(super) fn show(spec: &SizeSpec, detail: Detail) -> String {
    if !detail.details {
        return String::new();
    }
    let mut text = String::new();
    let mut word = |name: &str, value: &dyn core::fmt::Display| text += &format!(" {name} {value}");
    if spec.link_layer == LinkLayer::Atm {
        word("linklayer", &spec.link_layer.name());
    }
    if spec.overhead != 0 {
        word("overhead", &spec.overhead);
    }
    if spec.mpu != 0 {
        word("mpu", &spec.mpu);
    }
    if spec.link_layer == LinkLayer::Atm || spec.mpu > 0 {
        word("mtu", &spec.mtu);
        word("tsize", &spec.tsize);
    }
    text + " \n"
}
