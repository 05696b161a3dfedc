//! The socket between a caller and its supervisor: one JSON document per line, in both directions.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as Socket;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::Interest;
use tokio::net::UnixStream;

/// One end of the socket. It never waits for the other end to read, because the other process may be stopped.
#[derive(Debug)]
pub(crate) struct Channel {
    stream: UnixStream,
    read: Vec<u8>,
    /// The number of bytes at the start of `read` that contain no line end.
    searched: usize,
    unsent: Vec<u8>,
    ended: bool,
}

impl Channel {
    /// Creates one end. Needs a tokio runtime.
    pub(crate) fn new(socket: Socket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            stream: UnixStream::from_std(socket)?,
            read: Vec::new(),
            searched: 0,
            unsent: Vec::new(),
            ended: false,
        })
    }

    /// Sends without waiting. What can't be sent at once is sent during [`Channel::receive`]. A message that
    /// can't be serialized ends the channel, as if the other end were gone.
    pub(crate) fn send(&mut self, message: &impl Serialize) {
        match serde_json::to_vec(message) {
            Ok(line) => {
                self.unsent.extend(line);
                self.unsent.push(b'\n');
                self.flush();
            }
            Err(_) => self.ended = true,
        }
    }

    fn flush(&mut self) {
        while !self.unsent.is_empty() {
            match self.stream.try_write(&self.unsent) {
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The other end is gone. The next read will show this.
                Err(_) => self.unsent.clear(),
            }
        }
    }

    /// The next message; `None` once the stream has ended. Dropping the future loses nothing.
    pub(crate) async fn receive<T: DeserializeOwned>(&mut self) -> Option<T> {
        loop {
            if let Some(message) = self.received() {
                return Some(message);
            }
            if self.ended {
                return None;
            }
            let interest = if self.unsent.is_empty() {
                Interest::READABLE
            } else {
                Interest::READABLE | Interest::WRITABLE
            };
            // This fails only if the runtime is shutting down.
            self.ended |= self.stream.ready(interest).await.is_err();
        }
    }

    /// A message that has already arrived, if there is one.
    pub(crate) fn received<T: DeserializeOwned>(&mut self) -> Option<T> {
        self.flush();
        loop {
            let unsearched = &self.read[self.searched..];
            if let Some(end) = unsearched.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=self.searched + end).collect();
                self.searched = 0;
                // A line that can't be parsed was not sent by the other end, which is the same binary.
                if let Ok(message) = serde_json::from_slice(&line) {
                    return Some(message);
                }
                continue;
            }
            self.searched = self.read.len();
            let mut bytes = [0; 16 * 1024];
            match self.stream.try_read(&mut bytes) {
                Ok(0) => {
                    self.ended = true;
                    return None;
                }
                Ok(count) => self.read.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended |= error.kind() != ErrorKind::WouldBlock;
                    return None;
                }
            }
        }
    }

    /// Whether the stream has ended.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }
}

/// Sends an open file before all messages.
pub(crate) fn send_file(socket: &Socket, file: BorrowedFd<'_>) -> io::Result<()> {
    let files = [file];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(
        socket,
        &[IoSlice::new(b"\n")],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Receives the file that [`send_file`] sent.
pub(crate) fn receive_file(socket: &Socket) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(
        socket.as_fd(),
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    control
        .drain()
        .find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        })
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "no open file came first"))
}
