//! Signals that a stopped command gets when it continues.

use crate::Signal;

/// Signals that would wake stopped processes, or that these would lose. Others wait in the kernel.
#[derive(Debug, Default)]
pub(crate) struct DeferredSignals(Vec<Signal>);

impl DeferredSignals {
    /// Keeps `signal` for later, if it is one of them.
    pub(crate) fn keeps(&mut self, signal: Signal) -> bool {
        let keeps = matches!(signal, Signal::CONT | Signal::TSTP);
        if keeps {
            self.0.push(signal);
        }
        keeps
    }

    /// Those that were kept, in their order.
    pub(crate) fn into_signals(self) -> Vec<Signal> {
        self.0
    }
}
