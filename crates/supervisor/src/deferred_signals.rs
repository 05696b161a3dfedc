//! Signals that a stopped command receives only when it continues.

use crate::Signal;

/// The kept signals: those that would wake stopped processes, or that stopped processes would lose. The
/// kernel keeps all other signals.
#[derive(Debug, Default)]
pub(crate) struct DeferredSignals(Vec<Signal>);

impl DeferredSignals {
    /// Keeps `signal` for later, if it is one of these. Returns whether it was kept.
    pub(crate) fn keeps(&mut self, signal: Signal) -> bool {
        let keeps = matches!(signal, Signal::CONT | Signal::TSTP);
        if keeps {
            self.0.push(signal);
        }
        keeps
    }

    /// The kept signals, in order.
    pub(crate) fn into_signals(self) -> Vec<Signal> {
        self.0
    }
}
