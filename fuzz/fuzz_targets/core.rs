//! Fuzz target that passes its bytes to `targets::core`.

#![no_main]

#[path = "../../tests/simulation/model/mod.rs"]
mod model;

libfuzzer_sys::fuzz_target!(|data: &[u8]| model::targets::core(data));
