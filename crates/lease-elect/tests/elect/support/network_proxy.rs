//! A proxy to the API server. It can cut connections silently: nothing passes any more, and neither end is
//! notified. It can also delay the bytes that are sent to the server.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

pub(crate) struct NetworkProxy {
    address: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// The number of connections that were made.
    made: AtomicUsize,
    /// This many of the first connections are cut silently.
    silent: AtomicUsize,
    is_over: AtomicBool,
    ends: Mutex<Vec<TcpStream>>,
    /// The number of bytes received from the server.
    came: AtomicUsize,
    /// The bytes sent to the server since they are delayed.
    held: Mutex<Option<Vec<DelayedBytes>>>,
}

/// Bytes that are delayed.
struct DelayedBytes {
    to: TcpStream,
    bytes: Vec<u8>,
}

/// More bytes than keep-alive traffic on a connection has, but fewer than any write has.
const WRITE: usize = 200;

impl NetworkProxy {
    pub(super) fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let state = Arc::new(State::default());
        let (of_thread, server) = (Arc::clone(&state), server.to_owned());
        thread::spawn(move || {
            for client in listener.incoming() {
                if of_thread.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let client = client.expect("a connection");
                let upstream = TcpStream::connect(&server).expect("the server is there");
                let number = of_thread.made.fetch_add(1, Ordering::SeqCst);
                of_thread.carry(number, &client, &upstream, State::send);
                of_thread.carry(number, &upstream, &client, State::receive);
            }
        });
        Self { address, state }
    }

    /// The address to connect to.
    pub(crate) fn address(&self) -> String {
        self.address.clone()
    }

    /// The number of bytes received from the server.
    pub(crate) fn came(&self) -> usize {
        self.state.came.load(Ordering::SeqCst)
    }

    /// From now on, nothing passes.
    pub(crate) fn cut(&self) {
        self.state.silent.store(usize::MAX, Ordering::SeqCst);
    }

    /// From now on, nothing passes on the existing connections, as if the server's machine had been replaced.
    pub(crate) fn silence(&self) {
        let made = self.state.made.load(Ordering::SeqCst);
        self.state.silent.store(made, Ordering::SeqCst);
    }

    /// From now on, nothing passes, and all existing connections are closed.
    pub(crate) fn break_off(&self) {
        self.cut();
        self.state.close();
    }

    /// From now on, bytes to the server are delayed. Responses and events still arrive.
    pub(crate) fn hold_up(&self) {
        *self.state.held.lock().expect("no panic") = Some(Vec::new());
    }

    /// Whether a write is delayed.
    pub(crate) fn holds_a_write(&self) -> bool {
        let held = self.state.held.lock().expect("no panic");
        let bytes = held.iter().flatten().map(|parcel| parcel.bytes.len());
        bytes.sum::<usize>() > WRITE
    }

    /// Sends the delayed bytes to the server.
    pub(crate) fn let_go(&self) {
        let mut held = self.state.held.lock().expect("no panic");
        for mut parcel in held.take().into_iter().flatten() {
            parcel
                .to
                .write_all(&parcel.bytes)
                .expect("the server is there");
        }
    }
}

impl State {
    fn close(&self) {
        for end in self.ends.lock().expect("no panic").drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    fn is_silent(&self, number: usize) -> bool {
        number < self.silent.load(Ordering::SeqCst)
    }

    /// Sends bytes to the server, or delays them.
    fn send(&self, to: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
        match &mut *self.held.lock().expect("no panic") {
            Some(held) => held.push(DelayedBytes {
                to: to.try_clone()?,
                bytes: bytes.to_owned(),
            }),
            None => to.write_all(bytes)?,
        }
        Ok(())
    }

    fn receive(&self, to: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
        self.came.fetch_add(bytes.len(), Ordering::SeqCst);
        to.write_all(bytes)
    }

    fn carry(
        self: &Arc<Self>,
        number: usize,
        from: &TcpStream,
        to: &TcpStream,
        send: fn(&Self, &mut TcpStream, &[u8]) -> io::Result<()>,
    ) {
        let mut from = from.try_clone().expect("a second handle");
        let mut to = to.try_clone().expect("a second handle");
        let mut ends = self.ends.lock().expect("no panic");
        ends.push(from.try_clone().expect("a third handle"));
        let state = Arc::clone(self);
        thread::spawn(move || {
            let mut bytes = [0; 16 * 1024];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                // Bytes that arrive after the cut are dropped.
                if !state.is_silent(number) && send(&state, &mut to, &bytes[..count]).is_err() {
                    break;
                }
            }
            if !state.is_silent(number) {
                let _ = to.shutdown(Shutdown::Both);
            }
        });
    }
}

impl Drop for NetworkProxy {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(&self.address);
        self.state.close();
    }
}
