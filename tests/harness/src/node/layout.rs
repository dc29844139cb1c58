//! A node's directory: what is in it before the node begins, and how it goes.

use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Context as _;

use super::{NODES, Node, Options, State};
use crate::image::{Image, PAUSE};
use crate::init::Init;
use crate::{lists, tools};

/// Makes a node's directory; the lock says that it is in use.
pub(super) fn lay_out(dir: &Path, options: &Options) -> anyhow::Result<Option<File>> {
    let make = |name: &str| {
        let path = dir.join(name);
        std::fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))
    };
    make("")?;
    let lock = File::create(dir.join("lock.new")).context("cannot make the node's lock")?;
    lock.lock().context("cannot lock the node's lock")?;
    std::fs::rename(dir.join("lock.new"), dir.join("lock")).context("cannot publish the node's lock")?;
    for name in ["etc.upper", "etc.work", "etc.cni/net.d", "var.lib", "opt/cni/bin", "tmp", "bin", "log"] {
        make(name)?;
    }
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.join(name);
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    };
    std::fs::set_permissions(dir.join("tmp"), std::fs::Permissions::from_mode(0o1777))?;
    write("etc.upper/containerd-node.toml", options.containerd.config().as_bytes())?;
    for (name, text) in &options.lists {
        write(&format!("etc.cni/net.d/{name}"), text.as_bytes())?;
    }
    for (from, _) in options.containerd.plugins() {
        let name = from.file_name().context("a plugin without a name")?;
        tools::copy(&from, &dir.join("opt/cni/bin").join(name))?;
    }
    let program =
        std::fs::read(tools::built().join("pause/pause")).context("cannot read the pause program")?;
    let pause = Image { reference: PAUSE, name: "pause", program: &program, arguments: &[] };
    write("pause.tar", &pause.tar())?;
    write("state.json", &serde_json::to_vec(&State { containerd: options.containerd })?)?;
    new_boot(dir)?;
    Ok(Some(lock))
}

pub(super) fn new_boot(dir: &Path) -> anyhow::Result<()> {
    let id = std::fs::read("/proc/sys/kernel/random/uuid").context("cannot read a new uuid")?;
    std::fs::write(dir.join("boot_id"), id).context("cannot write the node's boot id")
}

/// What flannel's daemon would write.
pub(super) fn subnet(node: &Node) -> anyhow::Result<()> {
    std::fs::write(node.path("/run/flannel/subnet.env"), lists::SUBNET_ENV).context("cannot write subnet.env")
}

/// Removes what a run left that was killed together with its cleaner: directories whose lock nobody holds.
pub(super) fn sweep() {
    let Ok(entries) = std::fs::read_dir(NODES) else { return };
    for entry in entries.flatten() {
        let unused = File::open(entry.path().join("lock")).is_ok_and(|lock| lock.try_lock().is_ok());
        if unused && Init::find(&entry.path()).is_none() {
            let _ = Node::remove_dead(&entry.path());
        }
    }
}

pub(super) fn remove_dir(dir: &Path) -> anyhow::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", dir.display()))
        }
        _ => Ok(()),
    }
}
