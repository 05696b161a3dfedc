//! How long a holder may believe that it holds.

use super::clocks::{BootInstant, Clocks};
use super::decision::Write;
use super::lease::Lease;
use super::time::{Instant, Now, Span};
use crate::bugs::{self, Bug};

/// The reading at which a holder must have stopped: counted from before the write was sent, by the
/// duration in the server's answer. Steps of the wall clock never move it.
#[must_use]
pub const fn deadline(sent: BootInstant, answered_duration: u32) -> BootInstant {
    sent.plus(Span::seconds(answered_duration))
}

/// How much longer `lease` can last, by the latest estimate of the server's time, less `margin`.
pub(super) fn left_of(lease: &Lease, now: Now, margin: Span) -> Span {
    match lease.end() {
        Some(end) => end - margin - now.latest,
        None => Span::ZERO,
    }
}

/// The deadline of the client that sent `write` at `at`, once `lease` shows that the write took effect.
pub(super) fn believed(
    write: &Write,
    at: BootInstant,
    lease: &Lease,
    clocks: Clocks,
) -> BootInstant {
    let from = match bugs::active(Bug::DeadlineAfterAnswer) {
        true => clocks.boot,
        false => at,
    };
    match *write {
        Write::Acquire { duration, .. } | Write::Renew { duration, .. }
            if bugs::active(Bug::AskedDuration) =>
        {
            deadline(from, duration)
        }
        _ => deadline(from, lease.duration),
    }
}

/// Whether a belief until `deadline`, in a lock for `duration` seconds, is long enough at `now` to be reported
/// as a success: a third of the duration is left.
pub(crate) const fn leaves_enough(deadline: BootInstant, duration: u32, now: BootInstant) -> bool {
    deadline.since(now).as_micros() >= least_left(duration).as_micros()
}

/// A third of so many seconds, rounded up.
const fn least_left(seconds: u32) -> Span {
    Span::micros((Span::seconds(seconds).as_micros() + 2) / 3)
}

/// How long until a lock for `duration` seconds that ends at `end` [leaves too little](leaves_enough) to be reported.
pub(crate) fn report_limit(end: Instant, duration: u32, now: Now) -> Span {
    end - least_left(duration) - now.latest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_thirds_of_a_lock_may_pass_before_it_is_reported() {
        let now = Now::between(Instant::from_micros(0), Instant::from_micros(1_000_000));
        let end = Instant::from_micros(9_000_000);
        assert_eq!(report_limit(end, 9, now), Span::seconds(5));
    }

    #[test]
    fn belief_ends_a_duration_after_the_write_was_sent() {
        let sent = BootInstant::from_micros(5);
        assert_eq!(deadline(sent, 2).since(sent), Span::seconds(2));
    }
}
