//! The steps of owners and standbys at which they are killed and stopped.

use aether_harness::Threads;

/// The code of a process that SIGKILL ended.
pub(crate) const KILLED: i32 = 137;

/// What leads an agent to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leads {
    /// The first calls of the plugin.
    Calls,
    /// SIGTERM at the owner, with calls in flight.
    Told,
    /// The end of an owner that hung while a DEL came.
    Hung,
}

/// A step of an agent, by a call of the kernel that nothing else makes it do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) leads: Leads,
    /// The call, the how manieth, and what strace shows of it.
    pub(crate) call: (&'static str, u32, &'static str),
}

impl Step {
    /// Whose calls are counted: an owner is led to its end by its main thread, and to a call's steps by the others.
    pub(crate) fn of_owner(&self) -> Threads {
        if self.leads == Leads::Calls { Threads::All } else { Threads::Main }
    }
}

/// One step.
pub(crate) const fn step(name: &'static str, leads: Leads, call: (&'static str, u32, &'static str)) -> Step {
    Step { name, leads, call }
}
