//! libFuzzer over one target of `crates/fuzz`, which the environment names: `cargo xtask fuzz`.
#![no_main]

use std::sync::OnceLock;

/// The variable that names the target; libFuzzer's own arguments have no place for it.
const TARGET: &str = "FIRSTBYTE_FUZZ";

static BODY: OnceLock<fn(&[u8])> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: {
        BODY.get_or_init(body);
    },
    |data: &[u8]| BODY.get_or_init(body)(data)
);

fn body() -> fn(&[u8]) {
    let name = std::env::var(TARGET).unwrap_or_default();
    match targets::TARGETS.iter().find(|(target, _)| *target == name) {
        Some((_, body)) => *body,
        None => {
            eprintln!("{TARGET}={name} names no target; `cargo xtask fuzz` sets it");
            std::process::exit(2);
        }
    }
}
