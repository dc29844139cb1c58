//! Every time, bound and count of the system, each with its rule. Nothing else in the workspace repeats one.

use std::time::Duration;

/// How long an ADD waits for the agent by default (K04).
pub const ADD_DEADLINE: Duration = Duration::from_secs(5);
/// The longest ADD deadline that an entry may ask for (K04).
pub const ADD_DEADLINE_MAX: Duration = Duration::from_secs(30);
/// The pause between two attempts of an ADD to reach the agent (K04): short beside the milliseconds of a takeover.
pub const ADD_RETRY: Duration = Duration::from_millis(20);
/// Within which a DEL succeeds, whatever the agent does (K07).
pub const DEL_DEADLINE: Duration = Duration::from_secs(1);
/// How long a DEL waits for its standard input before it goes on without (K07).
pub const DEL_STDIN_WAIT: Duration = Duration::from_millis(500);
/// How long every other command waits for its standard input (K02).
pub const STDIN_WAIT: Duration = Duration::from_secs(2);
/// The largest standard input that is read, in bytes (K02).
pub const STDIN_MAX: usize = 4 * 1024 * 1024;
/// Within which a STATUS ends (K10).
pub const STATUS_DEADLINE: Duration = Duration::from_secs(1);
/// What a DEL or a STATUS keeps of its time for what comes after the agent: a tombstone, the answer (K07, K10).
pub const WRAP_UP: Duration = Duration::from_millis(200);
/// Within which a CHECK or a GC hears from the agent.
pub const CHECK_DEADLINE: Duration = Duration::from_secs(5);

/// How many tombstones may lie in the folder (K07).
pub const TOMBSTONES_MAX: usize = 10_000;
/// How long the owner remembers a DEL's start (K07).
pub const DEL_MEMORY: Duration = Duration::from_secs(60);
/// How many ADDs may be in flight (K16).
pub const ADDS_MAX: usize = 512;
/// How many other calls may be in flight (O04): far above what a node's runtime makes, and below what its memory holds.
pub const CALLS_MAX: usize = 4096;
/// How many connections the CNI socket serves at once (O04); more than [`ADDS_MAX`], so that the rest hears a refusal.
pub const CONNECTIONS_MAX: usize = 2048;
/// The largest message of a call, in bytes (O04): a GC lists every attachment of the node.
pub const CALL_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The longest single text of a call (a path, a name), in bytes (O04).
pub const CALL_TEXT_MAX: usize = 4096;
/// How many annotations, host ports or addresses an ADD may list, each (O04). Their size is bounded by
/// [`STATE_FILE_MAX`].
pub const CALL_LIST_MAX: usize = 4096;
/// How long open connections may take to end once nothing is in flight (T07): their callers are reset then and try again.
pub const DRAIN_LINGER: Duration = Duration::from_millis(100);
/// How long a drain waits for the call of a caller that was let in (T07): it comes within a millisecond, or late from a busy
/// machine, or never from one that was stopped.
pub const CALLER_WAIT: Duration = Duration::from_secs(1);
/// Within which a tombstone is applied while the owner serves (K07).
pub const TOMBSTONE_POLL: Duration = Duration::from_secs(1);
/// How often leftovers are looked for (S06).
pub const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// The share of records, in percent, above which a sweep is held back (S06).
pub const SWEEP_BREAKER_PERCENT: usize = 30;
/// The number of records under which the breaker never trips (S06).
pub const SWEEP_BREAKER_MIN: usize = 3;
/// How many further sweeps must agree before a held-back one acts (S06).
pub const SWEEP_BREAKER_AGREE: u32 = 2;
/// How many quarantined files are kept (S02).
pub const QUARANTINE_KEPT: usize = 10;
/// The largest record, tombstone, wanted state or marker that is read, in bytes.
pub const STATE_FILE_MAX: usize = 1024 * 1024;

/// How often the conflist is looked at without an event (C01).
pub const CHAIN_POLL: Duration = Duration::from_secs(5);
/// For how many intervals of [`CHAIN_POLL`] the node is unchained before the agent says that it is not ready (C08).
pub const CHAIN_RECHECKS: u32 = 3;
/// How many ADDs ask the policies at once, for each processor: more would only wait for each other, inside of their budget
/// instead of before it (M04).
pub const POLICIES_PER_PROCESSOR: usize = 1;
/// How often the operator's modules are looked at without an event (M08).
pub const MODULES_POLL: Duration = Duration::from_secs(5);
/// For how long nothing must change in their directory before it is read: a copy is under way (M08).
pub const MODULES_QUIET: Duration = Duration::from_millis(100);
/// The longest that a directory which never rests is waited for (M08).
pub const MODULES_UNREST: Duration = Duration::from_secs(2);
/// How long an owner waits for the operator's modules before it serves; those that are not compiled by then answer by
/// their failure policy (M05).
pub const MODULES_WAIT: Duration = Duration::from_secs(2);
/// How long modules may take to end, their last actions included (T07).
pub const MODULES_END: Duration = Duration::from_secs(1);
/// How many events for a person are kept (C06).
pub const EVENTS_KEPT: usize = 256;
/// The shortest time between two looks that events ask for (C01). A writer's first event comes before its last, so that a
/// repair often waits for this once: it is a part of the time to a repair, and still no busy core.
pub const CHAIN_EVENT_GAP: Duration = Duration::from_millis(3);
/// How many looks may come at that pace: more than any writer's few changes and our repairs of them ask for.
pub const CHAIN_EVENT_BURST: u32 = 64;
/// The time between two looks while somebody never rests in the directory, so that he costs the node well under a
/// hundredth of a core; after so long without an event one look at the quick pace comes back.
pub const CHAIN_EVENT_REST: Duration = Duration::from_millis(100);
/// How long the agent's loop may take to answer before the agent counts as stuck.
pub const LIVENESS: Duration = Duration::from_secs(5);
/// The pause after a failure to accept on a socket of the node (no descriptors left, usually), so that it does not spin.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long a standby that is asked whether it is ready may read ahead before it says so: well within [`READY_WAIT`].
pub const READ_AHEAD: Duration = Duration::from_millis(30);
/// How often an owner compares the node lock with its path (T01).
pub const LOCK_CHECK: Duration = Duration::from_secs(1);
/// How often an agent that holds the lock asks whether somebody else still answers on the CNI socket (T06).
pub const FOREIGN_LISTENER_POLL: Duration = Duration::from_millis(100);
/// How often it says who that is (T06, T08).
pub const FOREIGN_LISTENER_LOG: Duration = Duration::from_secs(30);
/// How often a waiting installer says what is missing (I05).
pub const INSTALL_WAIT_LOG: Duration = Duration::from_secs(30);
/// How long a writer that had a list open when it was replaced gets to finish (C02).
pub const LATE_WRITER: Duration = Duration::from_secs(5);
/// The pause between two looks at what it writes.
pub const LATE_WRITER_POLL: Duration = Duration::from_millis(5);
/// How long an agent waits for the lock of those who edit (I01); an installer holds it for milliseconds.
pub const EDIT_LOCK_WAIT: Duration = Duration::from_secs(10);
/// The pause between two tries for it.
pub const EDIT_LOCK_POLL: Duration = Duration::from_millis(2);
/// The largest conflist that is read, in bytes.
pub const CONFLIST_MAX: usize = 4 * 1024 * 1024;

/// How often an agent without the lock tries for it until an owner has greeted it, and how often it calls on the owner
/// (T13).
pub const LOCK_RETRY: Duration = Duration::from_millis(20);
/// How long a standby waits to be greeted before it calls again on what the path then names (T13).
pub const GREETING_WAIT: Duration = Duration::from_millis(100);
/// How long a standby that nobody greets keeps the listeners of an owner that is gone: long enough for any takeover, and no
/// longer, since an heir that finds them answering may be waiting for their end (T06, T13).
pub const DUPLICATES_KEPT: Duration = Duration::from_secs(1);
/// How long an owner waits for "ready" before it asks the next standby (T07).
pub const READY_WAIT: Duration = Duration::from_millis(100);
/// How long a takeover waits for the certificates of the pods that it added (T05).
pub const CERTIFICATE_WAIT: Duration = Duration::from_secs(1);
/// The pause before a takeover's failed step is tried again.
pub const TAKEOVER_RETRY: Duration = Duration::from_secs(1);
/// How many standbys an owner greets; a node has one or two.
pub const STANDBYS_MAX: usize = 8;
/// The largest message of the hand-over protocol, in bytes (T13).
pub const HANDOVER_MESSAGE_MAX: usize = 4096;
/// The share of the termination grace, as a divisor, for which SIGTERM may be put off (T12).
pub const TERMINATION_WAIT_DIVISOR: u32 = 2;
/// How long an agent waits for the operator's modules to be compiled before it counts as ready without them (T04, M08).
pub const POLICIES_GATE: Duration = Duration::from_secs(15);
/// How long a lone agent's registry gate stays shut before it no longer counts (T04).
pub const REGISTRY_GATE: Duration = Duration::from_secs(15);
