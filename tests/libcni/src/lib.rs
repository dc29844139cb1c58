//! libcni is the judge, not our reading of it (I07): the crate `aether-conflist` is held against the real libcni 1.1.2
//! and 1.3.1, each loaded by the go-cni of the containerd that uses it.
//!
//! - [`judge`]: the Go programs of `tests/tools/libcni-*`, asked thousands of questions a second through a pipe.
//! - [`case`]: a directory as a value, and what `aether-conflist` makes of it.
//! - [`generate`]: lists made up from a seed, and mutations of real ones.
//! - [`fixtures`]: the lists of `tests/fixtures/conflists`.
//!
//! The programs are built by `cargo xtask tools`; where one is missing the tests fail and say so.

pub mod case;
pub mod fixtures;
pub mod generate;
pub mod judge;
