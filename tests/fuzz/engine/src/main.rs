//! One target under libFuzzer, chosen by `AETHER_FUZZ_TARGET`. `cargo xtask fuzz` builds it with coverage and runs it.
#![no_main]

use std::sync::LazyLock;

use aether_fuzz::{Target, target};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("AETHER_FUZZ_TARGET").unwrap_or_default();
    target(&name).unwrap_or_else(|| panic!("AETHER_FUZZ_TARGET is {name:?}: use `cargo xtask fuzz --target NAME`"))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
