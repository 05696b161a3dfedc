//! Whether a suspect has stopped sending heartbeats.

use maintenance_lease::protocol::BootInstant;

use crate::known::Known;
use crate::node_health::Heartbeat;

/// How long the heartbeat of a node has not changed, by the boot clock of this host. The kubelet's clock may
/// be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnchangedHeartbeat {
    heartbeat: Known<Option<Heartbeat>>,
    since: BootInstant,
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
        earlier
            .filter(|unchanged| unchanged.heartbeat == *heartbeat)
            .unwrap_or_else(|| Self {
                heartbeat: heartbeat.clone(),
                since: at,
            })
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
        for (reads, now, is_over) in [
            (vec![(beat(1), 100)], 139, false),
            (vec![(beat(1), 100)], 140, true),
            (vec![(beat(1), 100), (beat(1), 120)], 140, true),
            // The kubelet reported. Its clock does not matter.
            (vec![(beat(1), 100), (beat(2), 120)], 140, false),
            (vec![(beat(2), 100), (beat(1), 120)], 159, false),
            (vec![(beat(2), 100), (beat(1), 120)], 160, true),
            // It is unknown what happened in between.
            (
                vec![(beat(1), 100), (unread.clone(), 120), (beat(1), 121)],
                160,
                false,
            ),
            (vec![(unread.clone(), 100)], 999, false),
            // There is no heartbeat to watch. Only the control plane shows whether the node is unreachable.
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
