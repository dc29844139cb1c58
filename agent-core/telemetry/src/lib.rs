//! What the agent says about itself: structured logs whose level changes at run time, and metrics with stable names (O01).
//!
//! Metric names stand once, in [`table`]; [`metrics`] registers exactly those, and `agent-core/docs/metrics.md` is printed
//! from them by [`page`] (`cargo run -p aether-telemetry --example metrics-page`). Nothing here serves or spawns: the
//! assembly owns the sockets.

pub mod logs;
pub mod metrics;
pub mod page;
pub mod table;

pub use metrics::Metrics;
