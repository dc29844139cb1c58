//! The look at lock and paths: by identity first, and only where a path names another file by a connection (T06, T13).

use std::collections::BTreeMap;
use std::path::PathBuf;

use aether_domain::paths;
use aether_domain::takeover::{Identity, Lock, Path, Sight, Socket};
use aether_durable::lock::Standing;
use aether_durable::socket::{self, Answers};

/// Where the node's sockets are.
#[derive(Debug, Clone)]
pub(crate) struct Places(BTreeMap<Socket, PathBuf>);

impl Places {
    pub(crate) fn new(run_dir: &std::path::Path) -> Self {
        let at = |socket, name| (socket, run_dir.join(name));
        Self([at(Socket::Cni, paths::CNI_SOCKET), at(Socket::Handover, paths::HANDOVER_SOCKET)].into())
    }

    /// The path of a socket; none of one that this agent does not serve.
    pub(crate) fn path(&self, socket: Socket) -> Option<&std::path::Path> {
        self.0.get(&socket).map(PathBuf::as_path)
    }

    /// Looks. `ours`: the sockets that this agent serves or holds duplicates of.
    pub(crate) fn look(&self, lock: Standing, ours: &BTreeMap<Socket, Identity>) -> Sight {
        let lock = match lock {
            Standing::Ours => Lock::Ours,
            Standing::Replaced => Lock::Replaced,
        };
        let see = |(socket, path): (&Socket, &PathBuf)| {
            let identity = socket::identity(path);
            let seen = match (identity, ours.get(socket)) {
                (None, _) => Path::Dead,
                (Some(named), Some(held)) if named == *held => Path::Ours,
                (Some(_), _) => match socket::ask(path) {
                    Answers::Nobody => Path::Dead,
                    Answers::Somebody { pid } => Path::Live { pid },
                },
            };
            (*socket, seen)
        };
        Sight { lock, paths: self.0.iter().map(see).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t06_t13_a_path_is_ours_by_identity_live_by_an_answer_and_otherwise_dead() {
        let dir = tempfile::tempdir().unwrap();
        let places = Places::new(dir.path());
        let none = BTreeMap::new();
        let cni = |sight: &Sight| sight.path(Socket::Cni);
        assert_eq!(cni(&places.look(Standing::Ours, &none)), Path::Dead);
        let bound = socket::bind(places.path(Socket::Cni).unwrap()).unwrap();
        let pid = Some(std::process::id());
        assert_eq!(cni(&places.look(Standing::Ours, &none)), Path::Live { pid });
        let ours = [(Socket::Cni, bound.identity)].into();
        let sight = places.look(Standing::Replaced, &ours);
        assert_eq!(
            (cni(&sight), sight.path(Socket::Handover), sight.lock),
            (Path::Ours, Path::Dead, Lock::Replaced)
        );
        let other = socket::bind(places.path(Socket::Cni).unwrap()).unwrap();
        assert_eq!(cni(&places.look(Standing::Ours, &ours)), Path::Live { pid });
        drop(other);
        assert_eq!(cni(&places.look(Standing::Ours, &ours)), Path::Dead);
    }
}
