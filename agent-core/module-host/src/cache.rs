//! Compiled artefacts, kept so that a module is compiled once (M09). They are code: each is authenticated with a key
//! that only root can read, and whatever does not check out is compiled again.

use std::path::{Path, PathBuf};

use aether_durable::atomic::{self, WriteError};
use aether_durable::{Attributes, read};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::engine::FLAGS;
use crate::private::{self, PrivateError};

/// The key's file, beside the artefacts.
const KEY: &str = "key";
/// The key's length in bytes: a block of SHA-256.
const KEY_LEN: usize = 64;
/// The code's length in bytes.
const CODE_LEN: usize = 32;
/// The largest artefact that is read: an interpreter in a component comes to some 46 MB.
const ARTEFACT_MAX: usize = 256 << 20;
/// How many artefacts are kept; the oldest go first.
const KEPT: usize = 128;

/// The folder of artefacts.
#[derive(Debug)]
pub struct Cache {
    directory: PathBuf,
    key: [u8; KEY_LEN],
}

/// Why there is no cache.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The folder or the key cannot be made.
    #[error("cannot set up the cache of compiled modules")]
    Write(#[source] WriteError),
    /// The key cannot be read.
    #[error("cannot read the key of the cache of compiled modules")]
    Read(#[source] read::ReadError),
    /// The folder or the key is not this user's alone.
    #[error("compiled modules are not kept there")]
    Private(#[source] PrivateError),
    /// The kernel gives no random bytes.
    #[error("the kernel gives no random bytes for the key of the cache of compiled modules")]
    Random(#[source] std::io::Error),
}

/// What the cache knows of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Looked {
    /// The artefact, authenticated.
    Hit(Vec<u8>),
    /// There is none.
    Miss,
    /// There is one, and it is not used: why.
    Unusable(String),
}

impl Cache {
    /// Opens the folder; makes it and its key where they are missing. Refuses what somebody else has made or can change:
    /// whoever knows the key has this program run their code.
    pub fn open(directory: &Path) -> Result<Self, CacheError> {
        atomic::create_dir_all(directory, 0o700).map_err(CacheError::Write)?;
        // After it is made: whoever was quicker made it.
        private::folder(directory).map_err(CacheError::Private)?;
        let path = directory.join(KEY);
        if let Some(read) = read::owned(&path, KEY_LEN).map_err(CacheError::Read)? {
            private::secret(&path, &read).map_err(CacheError::Private)?;
            if let Ok(key) = <[u8; KEY_LEN]>::try_from(read.bytes) {
                return Ok(Self { directory: directory.to_owned(), key });
            }
        }
        let mut key = [0u8; KEY_LEN];
        rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty())
            .map_err(|errno| CacheError::Random(errno.into()))?;
        // Two agents that do this at once leave one key; what the other wrote under its own is compiled again.
        atomic::replace(&path, &key, &Attributes::with_mode(0o600)).map_err(CacheError::Write)?;
        Ok(Self { directory: directory.to_owned(), key })
    }

    /// Looks for the artefact of the component with this digest.
    pub(crate) fn get(&self, digest: &str) -> Looked {
        let path = self.path(digest);
        let bytes = match read::bounded(&path, ARTEFACT_MAX) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Looked::Miss,
            Err(error) => return Looked::Unusable(error.to_string()),
        };
        let Some((code, artefact)) = bytes.split_at_checked(CODE_LEN) else {
            return Looked::Unusable(format!("{} is too short", path.display()));
        };
        match self.code(digest, artefact).verify_slice(code) {
            Ok(()) => Looked::Hit(artefact.to_vec()),
            Err(_) => Looked::Unusable(format!(
                "{} is damaged, or not written by this node's agent",
                path.display()
            )),
        }
    }

    /// Keeps an artefact.
    pub(crate) fn put(&self, digest: &str, artefact: &[u8]) -> Result<(), WriteError> {
        let mut bytes = self.code(digest, artefact).finalize().into_bytes().to_vec();
        bytes.extend_from_slice(artefact);
        atomic::replace(&self.path(digest), &bytes, &Attributes::with_mode(0o600))?;
        self.prune();
        Ok(())
    }

    fn path(&self, digest: &str) -> PathBuf {
        self.directory.join(format!("{digest}-{FLAGS}.cwasm"))
    }

    fn code(&self, digest: &str, artefact: &[u8]) -> Hmac<Sha256> {
        let mut code = Hmac::<Sha256>::new(&self.key.into());
        for part in [digest.as_bytes(), b"\n", FLAGS.as_bytes(), b"\n", artefact] {
            code.update(part);
        }
        code
    }

    /// Removes the oldest artefacts over the bound. What cannot be removed stays: it is only a cache.
    fn prune(&self) {
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return };
        let artefacts =
            entries.flatten().filter(|entry| entry.path().extension().is_some_and(|e| e == "cwasm"));
        let aged =
            artefacts.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())));
        let mut aged: Vec<_> = aged.collect();
        aged.sort();
        let over = aged.len().saturating_sub(KEPT);
        for (_, path) in aged.into_iter().take(over) {
            if let Err(error) = atomic::remove(&path) {
                tracing::debug!(%error, "an old compiled module stays");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use aether_domain::text::error_chain;

    use super::*;

    #[test]
    fn m09_an_artefact_comes_back_only_under_its_own_digest_and_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(dir.path()).unwrap();
        assert_eq!(cache.get("a"), Looked::Miss);
        cache.put("a", b"code").unwrap();
        assert_eq!(cache.get("a"), Looked::Hit(b"code".to_vec()));
        assert_eq!(Cache::open(dir.path()).unwrap().get("a"), Looked::Hit(b"code".to_vec()));
        std::fs::copy(cache.path("a"), cache.path("b")).unwrap();
        assert!(matches!(cache.get("b"), Looked::Unusable(_)));
        for damage in [&b""[..], b"short", &[0; 100]] {
            std::fs::write(cache.path("a"), damage).unwrap();
            assert!(matches!(cache.get("a"), Looked::Unusable(_)), "{damage:?}");
        }
        cache.put("a", b"again").unwrap();
        assert_eq!(cache.get("a"), Looked::Hit(b"again".to_vec()));
    }

    #[test]
    fn m09_another_key_makes_every_artefact_unusable() {
        let dir = tempfile::tempdir().unwrap();
        Cache::open(dir.path()).unwrap().put("a", b"code").unwrap();
        std::fs::write(dir.path().join(KEY), b"damaged").unwrap();
        let cache = Cache::open(dir.path()).unwrap();
        assert!(matches!(cache.get("a"), Looked::Unusable(_)));
    }

    #[test]
    fn m09_a_folder_or_key_that_somebody_else_made_or_can_change_is_refused_with_the_remedy() {
        use std::os::unix::fs::{PermissionsExt as _, chown};
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let dir = tempfile::tempdir().unwrap();
        Cache::open(dir.path()).unwrap();
        let key = dir.path().join(KEY);
        let refused = |path: &Path, why: &str| {
            let error = error_chain(&Cache::open(dir.path()).unwrap_err());
            let words = format!("{} is not used: {why}", path.display());
            assert!(error.contains(&words) && error.contains("Remove it"), "{error}");
        };
        for bits in [0o620, 0o640, 0o602, 0o604] {
            mode(&key, bits);
            refused(&key, &format!("its mode is {bits:04o}"));
        }
        mode(&key, 0o600);
        chown(&key, Some(65534), None).unwrap();
        refused(&key, "it belongs to uid 65534");
        chown(&key, Some(0), None).unwrap();
        Cache::open(dir.path()).unwrap();
        mode(dir.path(), 0o777);
        refused(dir.path(), "its mode is 0777");
        mode(dir.path(), 0o700);
        chown(dir.path(), Some(65534), None).unwrap();
        refused(dir.path(), "it belongs to uid 65534");
    }

    #[test]
    fn m09_the_number_of_artefacts_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(dir.path()).unwrap();
        for i in 0..KEPT + 5 {
            cache.put(&i.to_string(), b"x").unwrap();
        }
        let kept = std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(kept, KEPT + 1);
    }
}
