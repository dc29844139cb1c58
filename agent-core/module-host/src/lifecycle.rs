//! A module's life as a pure state machine (M02). The shell calls, waits and reports; what comes next is decided here.

use std::time::Duration;

/// The first wait after a fault.
pub const BACKOFF: Duration = Duration::from_millis(250);
/// The longest wait after a fault.
pub const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// How many faults within [`FAULT_MEMORY`] quarantine a module.
pub const FAULTS_MAX: usize = 5;
/// For how long a fault is remembered.
pub const FAULT_MEMORY: Duration = Duration::from_secs(600);

/// Where a module stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its code is there; it has no instance that answers.
    Loaded,
    /// Instantiated and initialised; nothing that acts is called.
    Disabled,
    /// The agent owns the node, and the module is called.
    Enabled,
    /// It failed, and gets a new instance at the given time.
    Faulted {
        /// When, on the host's clock.
        retry_at: Duration,
    },
    /// It failed too often: it gets no new instance until its file or settings change.
    Quarantined,
    /// It cannot be loaded, until its file or settings change.
    Rejected,
}

impl State {
    /// The state's stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loaded => "loaded",
            Self::Disabled => "disabled",
            Self::Enabled => "enabled",
            Self::Faulted { .. } => "faulted",
            Self::Quarantined => "quarantined",
            Self::Rejected => "rejected",
        }
    }

    /// All names, for a metric that has one series a state.
    pub const NAMES: [&'static str; 6] =
        ["loaded", "disabled", "enabled", "faulted", "quarantined", "rejected"];
}

/// Whether the agent owns the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It does not.
    Standby,
    /// It does.
    Owner,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A new version, or new settings: everything begins anew.
    Replaced,
    /// It cannot be loaded, or says that its settings are wrong.
    Refused,
    /// A new instance is initialised.
    Initialised,
    /// The agent owns the node from now on.
    Owns,
    /// It does no longer.
    Lost,
    /// The module was enabled.
    Enabled,
    /// A call failed.
    Fault,
    /// Time passed.
    Tick,
}

/// What the shell does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Rest,
    /// Make an instance and call `init`; answer with [`Input::Initialised`], [`Input::Refused`] or [`Input::Fault`].
    Instantiate,
    /// Call `enable`; answer with [`Input::Enabled`] or [`Input::Fault`].
    Enable,
    /// Call `disable`.
    Disable,
    /// Drop the instance.
    Drop,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    state: State,
    role: Role,
    faults: Vec<Duration>,
}

impl Machine {
    /// A module that was just found.
    pub fn new(role: Role) -> Self {
        Self { state: State::Loaded, role, faults: Vec::new() }
    }

    /// Where the module stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// Takes in what happened at `now` on the host's clock, and says what to do.
    pub fn step(&mut self, input: Input, now: Duration) -> Step {
        match input {
            Input::Replaced => {
                self.faults.clear();
                self.go(State::Loaded, Step::Instantiate)
            }
            Input::Refused => {
                self.faults.clear();
                self.go(State::Rejected, Step::Drop)
            }
            Input::Initialised => match (self.state, self.role) {
                (State::Loaded, Role::Owner) => self.go(State::Disabled, Step::Enable),
                (State::Loaded, Role::Standby) => self.go(State::Disabled, Step::Rest),
                _ => Step::Rest,
            },
            Input::Owns => {
                self.role = Role::Owner;
                if self.state == State::Disabled { Step::Enable } else { Step::Rest }
            }
            Input::Enabled => match (self.state, self.role) {
                (State::Disabled, Role::Owner) => self.go(State::Enabled, Step::Rest),
                _ => Step::Rest,
            },
            Input::Lost => {
                self.role = Role::Standby;
                if self.state == State::Enabled {
                    self.go(State::Disabled, Step::Disable)
                } else {
                    Step::Rest
                }
            }
            Input::Fault => self.fault(now),
            Input::Tick => match self.state {
                State::Faulted { retry_at } if retry_at <= now => self.go(State::Loaded, Step::Instantiate),
                _ => Step::Rest,
            },
        }
    }

    fn fault(&mut self, now: Duration) -> Step {
        match self.state {
            // It has no instance: a late answer of one that was dropped.
            State::Faulted { .. } | State::Quarantined | State::Rejected => return Step::Rest,
            State::Loaded | State::Disabled | State::Enabled => {}
        }
        self.faults.retain(|at| now.saturating_sub(*at) < FAULT_MEMORY);
        self.faults.push(now);
        if self.faults.len() >= FAULTS_MAX {
            return self.go(State::Quarantined, Step::Drop);
        }
        let doublings = u32::try_from(self.faults.len() - 1).unwrap_or(u32::MAX).min(16);
        let wait = BACKOFF.saturating_mul(1 << doublings).min(BACKOFF_MAX);
        self.go(State::Faulted { retry_at: now.saturating_add(wait) }, Step::Drop)
    }

    fn go(&mut self, state: State, step: Step) -> Step {
        self.state = state;
        step
    }
}

#[cfg(test)]
mod tests;
