//! Listens for the signals that this process forwards to its command.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::signal::unix::{SignalKind, signal};

use crate::Signal;

const FORWARDED: [Signal; 8] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::TSTP,
    Signal::CONT,
];

#[derive(Debug)]
pub(crate) struct Listeners(Vec<(Signal, tokio::signal::unix::Signal)>);

impl Listeners {
    /// Listens for all forwarded signals except those for which `is_ignored` returns true.
    pub(crate) fn new(is_ignored: impl Fn(Signal) -> bool) -> io::Result<Self> {
        FORWARDED
            .into_iter()
            .filter(|signal| !is_ignored(*signal))
            .map(|Signal(number)| Ok((Signal(number), signal(SignalKind::from_raw(number))?)))
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// The next signal. Dropping the future loses no signal.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (signal, stream) in &mut self.0 {
                if let Poll::Ready(Some(())) = stream.poll_recv(context) {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }
}
