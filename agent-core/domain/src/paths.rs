//! Every place on the node, in one file. Defaults: a program takes each from its configuration.

/// The run directory: lock and sockets, mode 0711.
pub const RUN_DIR: &str = "/run/aether";
/// The node lock, inside the run directory (T01).
pub const LOCK: &str = "agent.lock";
/// The CNI socket, inside the run directory.
pub const CNI_SOCKET: &str = "cni.sock";
/// The hand-over socket, inside the run directory (T13).
pub const HANDOVER_SOCKET: &str = "handover.sock";
/// The CNI socket's full default path, as it stands in our entry.
pub const CNI_SOCKET_PATH: &str = "/run/aether/cni.sock";
/// The state directory, mode 0700.
pub const STATE_DIR: &str = "/var/lib/aether";
/// Pod records, inside the state directory.
pub const PODS: &str = "pods";
/// Tombstones, inside the state directory.
pub const DELETES: &str = "deletes";
/// The marker of an uninstall, inside the state directory.
pub const UNINSTALLED: &str = "uninstalled";
/// What was last observed healthy (C03), inside the state directory.
pub const CHAIN: &str = "chain.json";
/// Compiled modules, inside the state directory (M09).
pub const MODULES_CACHE: &str = "modules-cache";
/// Observed upstreams, inside the state directory.
pub const UPSTREAMS: &str = "upstreams.json";
/// The directory of operator modules (M08).
pub const MODULES_DIR: &str = "/etc/aether/modules";
/// The compiler of modules, a program of its own (M09).
pub const MODULE_COMPILER: &str = "aether-modc";
/// The lock of everybody who changes list, entry, binary or marker (I01), inside the state directory.
pub const EDIT_LOCK: &str = "edit.lock";
/// The pod-local directory of the agent.
pub const LOCAL_DIR: &str = "/tmp/aether";
/// The admin socket, inside the pod-local directory.
pub const ADMIN_SOCKET: &str = "admin.sock";
/// The admin socket's full default path, where `aetherctl` asks.
pub const ADMIN_SOCKET_PATH: &str = "/tmp/aether/admin.sock";
/// The health socket, inside the pod-local directory; `agent-ready` asks there (B02).
pub const HEALTH_SOCKET: &str = "health.sock";
/// The directory of CNI configurations.
pub const CNI_CONF_DIR: &str = "/etc/cni/net.d";
/// The directory of CNI plugins.
pub const CNI_BIN_DIR: &str = "/opt/cni/bin";
/// The wanted state, inside the directory of CNI configurations; no loader takes the name (I10).
pub const WANTED: &str = ".aether-cni-entry";
/// The plugin's file name, which is the `type` of our entry.
pub const PLUGIN: &str = "aether-cni";
/// The name of our entry in a list.
pub const ENTRY_NAME: &str = "aether";
/// The kernel's id of this boot.
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// The ending of a record.
pub const RECORD_SUFFIX: &str = ".json";
/// The prefix of every temporary file of ours: hidden, and with none of a loader's endings (I03).
pub const TEMP_PREFIX: &str = ".aether-tmp-";
