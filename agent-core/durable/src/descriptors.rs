//! Bytes and descriptors over a unix socket, from one process to another (T13). Nothing here blocks.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The most descriptors that one message carries; what a peer sends beyond it is closed by the kernel.
pub const MAX: usize = 8;

/// Sends all of `bytes` and `descriptors` in one message; the error is the kernel's. A queue that cannot hold them is
/// `WouldBlock`, and then nothing was sent, or a part whose rest cannot follow: the connection is of no more use.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> std::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::TOOBIG.into());
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let sent = sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, flags)?;
    if sent == bytes.len() { Ok(()) } else { Err(Errno::WOULDBLOCK.into()) }
}

/// What was read.
#[derive(Debug, Default)]
pub struct Received {
    /// How many bytes; 0 is the end.
    pub bytes: usize,
    /// The descriptors that came with them, close-on-exec.
    pub descriptors: Vec<OwnedFd>,
}

/// Reads into `buffer`. Bytes that came with descriptors are never read together with those of a later message.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> std::io::Result<Received> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let message = recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut ancillary, flags)?;
    let mut descriptors = Vec::new();
    for one in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = one {
            descriptors.extend(rights);
        }
    }
    if message.flags.contains(ReturnFlags::CTRUNC) {
        return Err(std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            "more descriptors came than one message may carry, or than this process may open",
        ));
    }
    Ok(Received { bytes: message.bytes, descriptors })
}

/// Whether the other side has closed its end, as far as can be seen without waiting.
pub fn is_closed(socket: impl AsFd) -> bool {
    let mut fds = [PollFd::new(&socket, PollFlags::RDHUP)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut fds, Some(&at_once)) {
        // Not told: as far as can be seen it is there.
        Ok(0) | Err(_) => false,
        Ok(_) => {
            let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
            fds.iter().any(|fd| fd.revents().intersects(gone))
        }
    }
}

/// Ends both directions; the other side sees it at once, whoever else has the socket open.
pub fn shut(socket: impl AsFd) {
    // One that is not connected any more is what is asked for.
    let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    #[test]
    fn t13_descriptors_arrive_with_their_message_and_close_with_the_program() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut far, near) = UnixStream::pair().unwrap();
        send(ours.as_fd(), b"one", &[near.as_fd()]).unwrap();
        send(ours.as_fd(), b"two", &[]).unwrap();
        drop(near);
        let mut buffer = [0; 64];
        let mut first = receive(theirs.as_fd(), &mut buffer).unwrap();
        assert_eq!((first.descriptors.len(), &buffer[..3]), (1, &b"one"[..]));
        let given = first.descriptors.pop().unwrap();
        assert!(rustix::io::fcntl_getfd(&given).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
        UnixStream::from(given).write_all(b"hello").unwrap();
        let mut heard = String::new();
        far.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "hello");
        drop(ours);
        let mut rest = Vec::new();
        loop {
            let got = receive(theirs.as_fd(), &mut buffer).unwrap();
            if got.bytes == 0 {
                break;
            }
            rest.extend_from_slice(&buffer[..got.bytes]);
        }
        assert!(rest.ends_with(b"two"), "{rest:?}");
        assert!(is_closed(&theirs));
    }

    #[test]
    fn t13_a_full_queue_is_an_error_and_no_wait() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let error = (0..10_000).find_map(|_| send(ours.as_fd(), &[0; 4096], &[]).err()).unwrap();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
        assert!(!is_closed(&theirs));
        drop(theirs);
        assert_eq!(send(ours.as_fd(), b"x", &[]).unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
    }
}
