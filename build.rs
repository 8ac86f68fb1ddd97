//! Links the programs to a fixed address on Linux with glibc.
//!
//! At a variable address the dynamic linker adjusts about 27,000 addresses at each start of acpipe and of each
//! supervisor: 190 page faults, 0.5 ms. Libraries, heap and stacks keep their random addresses.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |name| env::var(name).unwrap_or_default();
    let is_glibc =
        target("CARGO_CFG_TARGET_OS") == "linux" && target("CARGO_CFG_TARGET_ENV") == "gnu";
    let features = target("CARGO_CFG_TARGET_FEATURE");
    let is_static = features.split(',').any(|feature| feature == "crt-static");
    if is_glibc && !is_static {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
