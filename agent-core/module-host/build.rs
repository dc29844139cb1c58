//! Tells the crate which target it is built for.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=AETHER_TARGET={target}");
}
