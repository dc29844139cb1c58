//! Mode, owner and extended attributes of a file, kept across a replacement (I08).

use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{self, Gid, Mode, Uid, XattrFlags};
use rustix::io::Errno;

use crate::atomic::WriteError;

/// What a file carries beside its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    mode: u32,
    owner: Option<(u32, u32)>,
    xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The largest list of names, or value, that Linux allows for extended attributes, in bytes (`XATTR_SIZE_MAX`).
const XATTR_MAX: usize = 64 * 1024;

impl Attributes {
    /// The attributes of a new file: this mode, owned by whoever writes it.
    pub fn with_mode(mode: u32) -> Self {
        Self { mode, owner: None, xattrs: Vec::new() }
    }

    /// The attributes of the file at `path`, a link followed.
    pub fn of(path: &Path) -> Result<Self, WriteError> {
        let stat = fs::stat(path).map_err(|errno| WriteError::new("look at", path, errno))?;
        let failed = |errno| WriteError::new("read the extended attributes of", path, errno);
        let mut names = vec![0u8; XATTR_MAX];
        let length = match fs::listxattr(path, names.as_mut_slice()) {
            Ok(length) => length,
            Err(Errno::NOTSUP | Errno::NOSYS) => 0,
            Err(errno) => return Err(failed(errno)),
        };
        names.truncate(length);
        let mut xattrs = Vec::new();
        for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let mut value = vec![0u8; XATTR_MAX];
            match fs::getxattr(path, name, value.as_mut_slice()) {
                Ok(length) => {
                    value.truncate(length);
                    xattrs.push((name.to_vec(), value));
                }
                // Gone since it was listed.
                Err(Errno::NODATA) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        Ok(Self { mode: stat.st_mode & 0o7777, owner: Some((stat.st_uid, stat.st_gid)), xattrs })
    }

    pub(crate) fn apply(&self, file: BorrowedFd<'_>, shown: &Path) -> Result<(), WriteError> {
        if let Some((uid, gid)) = self.owner {
            let current = fs::fstat(file).map_err(|errno| WriteError::new("look at", shown, errno))?;
            if (current.st_uid, current.st_gid) != (uid, gid) {
                fs::fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))
                    .map_err(|errno| WriteError::new("chown", shown, errno))?;
            }
        }
        // After chown, which clears set-id bits.
        fs::fchmod(file, Mode::from_raw_mode(self.mode))
            .map_err(|errno| WriteError::new("chmod", shown, errno))?;
        for (name, value) in &self.xattrs {
            fs::fsetxattr(file, name.as_slice(), value, XattrFlags::empty())
                .map_err(|errno| WriteError::new("set an extended attribute of", shown, errno))?;
        }
        Ok(())
    }
}
