//! The signals that this process receives for its command.

use std::future::{pending, poll_fn};
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

/// The signals that a user sends to this process and that are also meant for its command: INT, TERM, HUP,
/// QUIT, USR1, USR2, TSTP and CONT.
///
/// A signal that this process ignored when it was started (for example because of `nohup`) stays ignored,
/// also for the command. Only Linux shows which ones these are. Once a `Signals` was created, none of the
/// other signals has its default effect on this process any more, even after it is dropped.
#[derive(Debug)]
pub struct Signals(Vec<(Signal, tokio::signal::unix::Signal)>);

impl Signals {
    /// Starts to listen. Needs a tokio runtime with I/O.
    ///
    /// # Errors
    ///
    /// If `/proc` does not show which signals are ignored, or the system refuses.
    pub fn new() -> io::Result<Self> {
        Self::listen(Ignored::now()?, |_| true)
    }

    fn listen(ignored: Ignored, is_wanted: impl Fn(Signal) -> bool) -> io::Result<Self> {
        FORWARDED
            .into_iter()
            .filter(|signal| is_wanted(*signal) && !ignored.has(*signal))
            .map(|Signal(number)| Ok((Signal(number), signal(SignalKind::from_raw(number))?)))
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// The next signal. Dropping the future loses no signal.
    pub async fn next(&mut self) -> Signal {
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

/// Completes at Ctrl-C or Ctrl-\, if the terminal is gone, or if this process is asked to end, for example by
/// `timeout` or a canceled job. Signals that were ignored when this process was started stay ignored.
pub async fn termination() {
    // Without `/proc`, no signal counts as ignored.
    let ignored = Ignored::now().unwrap_or(Ignored { mask: 0 });
    match Signals::listen(ignored, Signal::asks_to_end) {
        Ok(mut signals) => drop(signals.next().await),
        Err(_) => pending().await,
    }
}

/// The signals that this process ignored when it was started, for example because of `nohup` or `trap ''
/// INT`. Its parent wants this process, and all processes that it starts, to survive these signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ignored {
    /// A bit mask with signal 1 in the lowest bit.
    mask: u64,
}

impl Ignored {
    /// The signals that are ignored now. Call it before this process listens to any of them. Only Linux shows
    /// them: on other systems, there are none.
    ///
    /// # Errors
    ///
    /// If `/proc` does not show them.
    pub fn now() -> io::Result<Self> {
        if !cfg!(target_os = "linux") {
            return Ok(Self { mask: 0 });
        }
        let status = std::fs::read_to_string("/proc/self/status")?;
        Self::parse(&status).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "/proc/self/status doesn't tell which signals are ignored",
            )
        })
    }

    fn parse(status: &str) -> Option<Self> {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:"))?;
        let mask = u64::from_str_radix(line.trim(), 16).ok()?;
        Some(Self { mask })
    }

    /// Whether `signal` is ignored.
    #[must_use]
    pub fn has(self, Signal(number): Signal) -> bool {
        self.mask & (1 << (number - 1)) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status() {
        let status = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\tffff\n";
        let ignored = Ignored::parse(status).expect("a mask");
        assert!(ignored.has(Signal::HUP) && !ignored.has(Signal::INT));
        assert_eq!(Ignored::parse("Name:\tx\n"), None);
    }
}
