//! The generated page is the one the code prints.

use std::path::Path;

#[test]
fn o01_the_generated_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
    let stands = std::fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!("cannot read {}: {error}; print it: {}", path.display(), aether_telemetry::page::COMMAND)
    });
    assert!(
        stands == aether_telemetry::page::markdown(),
        "{} is stale; print it again: {}",
        path.display(),
        aether_telemetry::page::COMMAND
    );
}
