//! Our chain under a real containerd: each test runs under Debian's 1.6 and under 2.4.

#![allow(clippy::indexing_slicing, clippy::print_stdout, reason = "what tests call is test code too")]

/// Makes of each test one for each containerd.
macro_rules! both {
    ($($name:ident),* $(,)?) => {
        $(mod $name {
            #[tokio::test(flavor = "multi_thread")]
            async fn containerd_1() -> anyhow::Result<()> {
                super::$name(aether_harness::Containerd::V1).await
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn containerd_2() -> anyhow::Result<()> {
                super::$name(aether_harness::Containerd::V2).await
            }
        })*
    };
}
mod abandoned;
mod add;
mod crash;
mod del;
mod list;
mod policy;
mod runtime;
mod spine;
mod state;
mod status;
mod strip;
