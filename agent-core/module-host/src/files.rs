//! Reading operator modules from their directory (M08, M09).

use std::path::Path;

use aether_durable::read::{self, Owned, ReadError};

use crate::failure::LoadError;
use crate::layout::{self, Entry, Found, Kind, Place};
use crate::limits::MANIFEST_MAX;

/// What the directory holds. One that is not there holds nothing.
pub(crate) fn list(directory: &Path) -> std::io::Result<Found> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Found::default()),
        other => other?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        // A name that is no text is no module name as it stands here, and is told of as such.
        let name = entry.file_name().to_string_lossy().into_owned();
        // Follows links: the keys of a mounted ConfigMap are links.
        let kind = if entry.path().is_dir() { Kind::Directory } else { Kind::File };
        names.push(Entry { name, kind });
    }
    names.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(layout::read(&names))
}

/// Reads the text of a module's manifest.
pub(crate) fn manifest_text(directory: &Path, manifest: &Path) -> Result<String, LoadError> {
    let path = directory.join(manifest);
    let bytes = owned(&path, MANIFEST_MAX)?;
    String::from_utf8(bytes).map_err(|_| LoadError::NotText { path })
}

/// Reads a module's component, of at most what its manifest allows.
pub(crate) fn component(directory: &Path, place: &Place, limit: usize) -> Result<Vec<u8>, LoadError> {
    owned(&directory.join(&place.component), limit).map_err(|error| match error {
        LoadError::Read(ReadError::TooLarge { .. }) => LoadError::TooLarge { limit },
        other => other,
    })
}

/// The bytes of a file that only root can have written. Its directory is not looked at: a kubelet mounts a `ConfigMap`
/// as a directory of mode 0777 (read-only), and whoever could put a file there could not make it root's.
fn owned(path: &Path, max: usize) -> Result<Vec<u8>, LoadError> {
    let read = read::owned(path, max).map_err(LoadError::Read)?;
    let Some(Owned { bytes, uid, mode }) = read else {
        return Err(LoadError::Missing { path: path.to_owned() });
    };
    let why = match (uid, mode & 0o022) {
        (0, 0) => return Ok(bytes),
        (0, _) => format!("its mode is {mode:04o}"),
        _ => format!("it belongs to uid {uid}"),
    };
    Err(LoadError::Writable { path: path.to_owned(), why })
}

/// What the first bytes of a file are, where they are no component.
pub(crate) fn kind(bytes: &[u8]) -> Result<(), LoadError> {
    let what = match bytes {
        [0, b'a', b's', b'm', 0x0d, 0, 1, 0, ..] => return Ok(()),
        [] => "the file is empty: build or copy it again".to_owned(),
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => {
            "it is a core module and no component: `aetherctl policy pack` makes one of it".to_owned()
        }
        [0, b'a', b's', b'm', ..] => "it is WebAssembly of another version than this agent runs".to_owned(),
        [0x7f, b'E', b'L', b'F', ..] => {
            "it is a native object: only .wasm is accepted, never compiled code".to_owned()
        }
        [b'(', ..] => "it is WebAssembly in text form: only the binary form is accepted".to_owned(),
        _ => "it is no WebAssembly".to_owned(),
    };
    Err(LoadError::NotAComponent { what })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, chown};

    #[test]
    fn m09_only_files_of_root_that_nobody_else_can_write_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.toml");
        assert!(matches!(owned(&path, 10), Err(LoadError::Missing { .. })));
        std::fs::write(&path, "x").unwrap();
        for (mode, taken) in [(0o600, true), (0o644, true), (0o664, false), (0o646, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(owned(&path, 10).is_ok(), taken, "{mode:o}");
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        chown(&path, Some(65534), None).unwrap();
        let error = owned(&path, 10).unwrap_err().to_string();
        assert!(error.contains("uid 65534") && error.contains("chown root:root"), "{error}");
    }

    #[test]
    fn m04_m09_what_is_no_component_is_named() {
        assert!(kind(b"\0asm\x0d\0\x01\0rest").is_ok());
        for (bytes, words) in [
            (&b""[..], "empty"),
            (b"\0asm\x01\0\0\0", "core module"),
            (b"\x7fELF\x02", "native object"),
            (b"(component)", "text form"),
            (b"hello", "no WebAssembly"),
            (b"\0asm\x0e\0\x01\0", "another version"),
        ] {
            let error = kind(bytes).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
