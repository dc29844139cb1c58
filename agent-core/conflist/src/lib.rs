//! Which CNI list a container runtime loads, what libcni makes of it, and how our entry goes in and out of it.
//!
//! Pure: no I/O, no threads, no clock. The caller reads the directory and the files, and writes the results.
//!
//! The flow of a caller, an installer for example:
//!
//! 1. list `net.d` without its directories; [`load::candidates`] puts the names into the runtime's order (I04); the
//!    first one is the file, whatever it holds;
//! 2. read it; [`load::drop_in_dir`] says which sub directory libcni 1.3 would read as well; read its `*.conf`;
//! 3. [`load::List::load`]: what libcni 1.1.2 and 1.3.1 make of it, or a [`load::Refusal`] that names who refuses
//!    it, where and why (I07);
//! 4. [`edit::put`] and [`edit::remove`] give the new bytes; everything outside our object keeps its bytes (I02).
//!
//! Whoever only wants the state fills a [`chain::Snapshot`] and asks [`chain::inspect`] (C01).
//!
//! ```
//! use aether_conflist::{edit, load::{DropIns, List}, own::OwnEntry};
//!
//! let bytes = br#"{"name":"cbr0","cniVersion":"1.0.0","plugins":[{"type":"flannel"}]}"#;
//! let list = List::load("10-flannel.conflist", bytes, DropIns::none())?;
//! let wanted = OwnEntry::parse(br#"{"name":"aether","type":"aether-cni"}"#)?;
//! let edited = edit::put(&list, &wanted)?;
//! assert_eq!(
//!     String::from_utf8_lossy(&edited),
//!     r#"{"name":"cbr0","cniVersion":"1.0.0","plugins":[{"type":"flannel"},{"name":"aether","type":"aether-cni"}]}"#,
//! );
//! let again = List::load("10-flannel.conflist", &edited, DropIns::none())?;
//! assert_eq!(edit::remove(&again)?, bytes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod chain;
pub mod derived;
pub mod edit;
pub mod json;
pub mod libcni;
pub mod load;
pub mod own;
pub mod want;
