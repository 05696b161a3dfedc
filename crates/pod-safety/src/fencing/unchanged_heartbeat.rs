//! Whether a suspect has stopped sending heartbeats.

use maintenance_lease::protocol::{BootInstant, Span};

use crate::constants::HEARTBEAT_DURATION;
use crate::known::Known;
use crate::node_health::Heartbeat;

/// How long the heartbeat of a node has not changed, by the boot clock of this host. The kubelet's clock may
/// be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnchangedHeartbeat {
    heartbeat: Known<Option<Heartbeat>>,
    since: BootInstant,
    /// A change of the heartbeat was observed.
    has_changed: bool,
}

/// The result of watching the heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// The kubelet reported.
    Reports,
    /// The kubelet has stopped reporting.
    Stopped,
    /// Unknown. A live kubelet may not have reported within this time.
    TooShort {
        /// How long the heartbeat was watched.
        time: Span,
        /// How long it must be watched.
        needed: Span,
    },
}

impl UnchangedHeartbeat {
    /// What is known after a read of `heartbeat` that ended `at` this time. `earlier` is what was known
    /// before.
    #[must_use]
    pub fn after(
        earlier: Option<Self>,
        heartbeat: &Known<Option<Heartbeat>>,
        at: BootInstant,
    ) -> Self {
        let has_changed = earlier.as_ref().is_some_and(|unchanged| {
            let both = unchanged.heartbeat.value().zip(heartbeat.value());
            unchanged.has_changed || both.is_some_and(|(before, now)| before != now)
        });
        earlier
            .filter(|unchanged| unchanged.heartbeat == *heartbeat)
            .unwrap_or_else(|| Self {
                heartbeat: heartbeat.clone(),
                since: at,
                has_changed,
            })
    }

    /// The result of watching until `at`.
    #[must_use]
    pub fn watched(&self, at: BootInstant) -> Watched {
        let heartbeat = self.heartbeat.value().copied().flatten();
        match (self.is_over(at), self.has_changed) {
            (true, _) => Watched::Stopped,
            (false, true) => Watched::Reports,
            (false, false) => Watched::TooShort {
                time: at.since(self.since),
                needed: heartbeat.map_or(HEARTBEAT_DURATION, |heartbeat| heartbeat.duration),
            },
        }
    }

    /// Whether a live kubelet would have renewed the heartbeat before `at`, the start of the last read. A
    /// heartbeat that could not be read proves nothing.
    #[must_use]
    pub fn is_over(&self, at: BootInstant) -> bool {
        match &self.heartbeat {
            Known::Yes(Some(heartbeat)) => at.since(self.since) >= heartbeat.duration,
            Known::Yes(None) => true,
            Known::Unknown(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::{Instant, Span};

    use super::*;
    use crate::known::Why;

    #[test]
    fn a_heartbeat_that_did_not_change_for_as_long_as_it_lasts_has_stopped() {
        let at = |seconds: i64| BootInstant::from_micros(seconds * 1_000_000);
        let beat = |micros| {
            let at = Instant::from_micros(micros);
            Known::Yes(Some(Heartbeat {
                at,
                duration: Span::seconds(40),
            }))
        };
        let unread = Known::Unknown(Why::NotRead);
        let seconds = Span::seconds;
        let short = |time| Watched::TooShort {
            time: seconds(time),
            needed: seconds(40),
        };
        for (reads, now, watched) in [
            (vec![(beat(1), 100)], 139, short(39)),
            (vec![(beat(1), 100)], 140, Watched::Stopped),
            (vec![(beat(1), 100), (beat(1), 120)], 140, Watched::Stopped),
            // The kubelet reported. Its clock does not matter.
            (vec![(beat(1), 100), (beat(2), 120)], 140, Watched::Reports),
            (vec![(beat(2), 100), (beat(1), 120)], 159, Watched::Reports),
            (vec![(beat(2), 100), (beat(1), 120)], 160, Watched::Stopped),
            // It is unknown what happened in between.
            (
                vec![(beat(1), 100), (unread.clone(), 120), (beat(1), 121)],
                160,
                short(39),
            ),
            (vec![(unread.clone(), 100)], 999, short(899)),
            // There is no heartbeat to watch. Only the control plane shows whether the node is unreachable.
            (vec![(Known::Yes(None), 100)], 100, Watched::Stopped),
        ] {
            let unchanged = reads.iter().fold(None, |earlier, (heartbeat, read)| {
                Some(UnchangedHeartbeat::after(earlier, heartbeat, at(*read)))
            });
            let unchanged = unchanged.expect("a read");
            assert_eq!(unchanged.watched(at(now)), watched, "{reads:?} {now}");
            let is_over = watched == Watched::Stopped;
            assert_eq!(unchanged.is_over(at(now)), is_over, "{reads:?} {now}");
        }
    }
}
