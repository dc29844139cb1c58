//! The system calls of a run that touch the node: the points at which it can be killed or fail.

use std::collections::BTreeMap;

use crate::support::Node;

/// strace's names of every call by which files are looked at or changed; `?` where an architecture lacks one.
const CALLS: &str = "?open,openat,read,write,fsync,?rename,?renameat,?renameat2,?unlink,?unlinkat,?linkat,?mkdir,?mkdirat,\
                     fchmod,fchown,?fsetxattr,flock,getdents64,close";

/// The n-th call of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) call: String,
    pub(crate) nth: usize,
    pub(crate) line: String,
}

impl Point {
    /// strace's options that inject `what` here.
    pub(crate) fn inject(&self, what: &str) -> [String; 2] {
        [format!("-etrace={}", self.call), format!("-einject={}:{what}:when={}", self.call, self.nth)]
    }
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.call, self.nth, self.line)
    }
}

/// Every call of a whole run of `args` that names the node's directories. The loader's are left out: nothing of ours has
/// begun, or depends on them. A run makes the same calls each time.
pub(crate) fn of(prepare: impl Fn() -> Node, args: &[&str]) -> Vec<Point> {
    let node = prepare();
    let (ran, trace) = node.strace(&["-y".to_owned(), format!("-etrace={CALLS}")], args);
    ran.ends(0);
    let root = node.root().to_string_lossy().into_owned();
    let mut counts = BTreeMap::new();
    let mut points = Vec::new();
    for line in trace.lines() {
        // `<pid> <call>(<arguments>) = <result>`
        let Some(call) = line.split_once('(').and_then(|(head, _)| head.split(' ').next_back()) else {
            continue;
        };
        let nth = counts.entry(call.to_owned()).and_modify(|count| *count += 1).or_insert(1_usize);
        if line.contains(&root) {
            points.push(Point { call: call.to_owned(), nth: *nth, line: line.to_owned() });
        }
    }
    assert!(points.len() > 30, "too few calls in {trace}");
    points
}
