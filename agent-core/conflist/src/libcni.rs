//! What the two versions of libcni make of a file, each by itself.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::json::{Document, Node};

/// A version of libcni, with the go-cni that calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// libcni 1.1.2, as in containerd 1.
    V1_1_2,
    /// libcni 1.3.1, as in containerd 2.
    V1_3_1,
}

/// What is wrong, and where in the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) offset: Option<usize>,
    pub(crate) reason: String,
}

/// One plugin as libcni sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plugin {
    pub(crate) plugin_type: String,
}

pub(crate) fn entry(document: &Document, node: Node) -> Result<Plugin, Wrong> {
    let _ = (document, node);
    unimplemented!()
}

pub(crate) fn drop_in_dir(conf_dir: &Path, file_name: &OsStr, bytes: &[u8]) -> Option<PathBuf> {
    let _ = (conf_dir, file_name, bytes);
    unimplemented!()
}
