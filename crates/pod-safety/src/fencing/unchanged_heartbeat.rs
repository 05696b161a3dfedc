//! Whether a suspect has stopped sending heartbeats.

use maintenance_lease::protocol::BootInstant;

use crate::known::Known;
use crate::node_health::Heartbeat;

/// For how long the heartbeat of a node has not changed, by the clock of who watches it: the kubelet's may be
/// wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnchangedHeartbeat {
    heartbeat: Known<Option<Heartbeat>>,
    since: BootInstant,
}

impl UnchangedHeartbeat {
    /// What is known after `heartbeat` was read, which `at` was over; `earlier` is what was known before.
    #[must_use]
    pub fn after(
        earlier: Option<Self>,
        heartbeat: &Known<Option<Heartbeat>>,
        at: BootInstant,
    ) -> Self {
        earlier
            .filter(|unchanged| unchanged.heartbeat == *heartbeat)
            .unwrap_or_else(|| Self {
                heartbeat: heartbeat.clone(),
                since: at,
            })
    }

    /// Whether a live kubelet would have renewed it before `at`, when the last read began. What could not be
    /// read proves nothing.
    #[must_use]
    pub fn is_over(&self, at: BootInstant) -> bool {
        match &self.heartbeat {
            Known::Yes(Some(heartbeat)) => at.since(self.since) >= heartbeat.lasts,
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
                lasts: Span::seconds(40),
            }))
        };
        let unread = Known::Unknown(Why::NotRead);
        for (reads, now, is_over) in [
            (vec![(beat(1), 100)], 139, false),
            (vec![(beat(1), 100)], 140, true),
            (vec![(beat(1), 100), (beat(1), 120)], 140, true),
            // The kubelet reported, by whatever clock.
            (vec![(beat(1), 100), (beat(2), 120)], 140, false),
            (vec![(beat(2), 100), (beat(1), 120)], 159, false),
            (vec![(beat(2), 100), (beat(1), 120)], 160, true),
            // Nobody knows what happened in between.
            (
                vec![(beat(1), 100), (unread.clone(), 120), (beat(1), 121)],
                160,
                false,
            ),
            (vec![(unread.clone(), 100)], 999, false),
            // Only the control plane tells of it.
            (vec![(Known::Yes(None), 100)], 100, true),
        ] {
            let unchanged = reads.iter().fold(None, |earlier, (heartbeat, read)| {
                Some(UnchangedHeartbeat::after(earlier, heartbeat, at(*read)))
            });
            let unchanged = unchanged.expect("a read");
            assert_eq!(unchanged.is_over(at(now)), is_over, "{reads:?} {now}");
        }
    }
}
