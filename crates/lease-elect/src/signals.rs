//! Handles signals while the process connects and stands by. There is no daemon yet to forward them to.

use std::future::pending;
use std::io::{self, IsTerminal as _};

use supervisor::{Ignored, Signal};
use tokio::signal::unix::{self, SignalKind, signal};

use crate::exit::Code;

/// Listens for signals that ask this process to end. Otherwise, process 1 of a container would not end.
/// Signals that were ignored when the process was started stay ignored.
pub(crate) struct EndSignals {
    interrupt: SignalStream,
    quit: SignalStream,
    terminate: SignalStream,
    /// HUP: if the process has a terminal, the terminal is gone. Otherwise the signal is for the daemon, like
    /// USR1 and USR2, for example to reload its configuration.
    hang_up: SignalStream,
    has_terminal: bool,
    _for_the_daemon: [SignalStream; 2],
}

/// Listens for one signal, unless it is ignored.
struct SignalStream(Option<unix::Signal>);

impl EndSignals {
    /// Starts to listen.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn new() -> io::Result<Self> {
        let ignored = Ignored::now()?;
        Ok(Self {
            interrupt: SignalStream::new(Signal::INT, ignored)?,
            quit: SignalStream::new(Signal::QUIT, ignored)?,
            terminate: SignalStream::new(Signal::TERM, ignored)?,
            hang_up: SignalStream::new(Signal::HUP, ignored)?,
            has_terminal: io::stdin().is_terminal(),
            _for_the_daemon: [
                SignalStream::new(Signal::USR1, ignored)?,
                SignalStream::new(Signal::USR2, ignored)?,
            ],
        })
    }

    /// Completes once the process is asked to end, and returns the exit code. Dropping the future loses
    /// nothing.
    pub(crate) async fn received(&mut self) -> Code {
        loop {
            tokio::select! {
                biased;
                () = self.terminate.hears() => return Code::DONE,
                () = self.interrupt.hears() => return Code::INTERRUPTED,
                () = self.quit.hears() => return Code::INTERRUPTED,
                () = self.hang_up.hears() => {
                    if self.has_terminal {
                        return Code::INTERRUPTED;
                    }
                }
            }
        }
    }

    /// Stops listening. From now on, signals are for the daemon.
    pub(crate) fn stop(self) {}
}

impl SignalStream {
    fn new(wanted: Signal, ignored: Ignored) -> io::Result<Self> {
        let listening = (!ignored.has(wanted)).then(|| signal(SignalKind::from_raw(wanted.0)));
        listening.transpose().map(Self)
    }

    async fn hears(&mut self) {
        match &mut self.0 {
            Some(signal) => {
                signal.recv().await;
            }
            None => pending().await,
        }
    }
}
