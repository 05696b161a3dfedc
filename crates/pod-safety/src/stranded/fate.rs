//! What becomes of a pod on a node that is not well.

use maintenance_lease::protocol::{Instant, Now, Span};

use super::Place;
use super::pod::Pod;
use crate::node::Health;
use crate::taint::NoExecute;

/// What becomes of a pod on a node that is not well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is being deleted and has time until then.
    Ending {
        /// The end of its grace.
        until: Instant,
    },
    /// It should have ended, and nobody confirms that it did.
    Terminating {
        /// The end of its grace.
        since: Instant,
        /// Its controller can't replace it before it is gone.
        name_held: bool,
    },
    /// It has ended, and the object stays for others to agree.
    HeldByFinalizer {
        /// Who must agree.
        finalizers: Vec<String>,
    },
    /// It is deleted at about this time: the eviction counts from when the controller saw the taint.
    Evicted {
        /// Then; it may have passed.
        at: Instant,
    },
    /// It tolerates that for ever.
    NeverEvicted,
    /// No taint evicts anything from the node.
    Unevicted,
    /// Its Node is gone: PodGC deletes it.
    Collected,
}

/// What becomes of `pod`, whose node is `place`, seen at `now`; `None` if it ended long ago and is in
/// nobody's way.
#[must_use]
pub fn fate(pod: &Pod, place: &Place, now: Now) -> Option<Fate> {
    Some(match pod.sight.ends {
        Some(_) if pod.sight.was_forced() => Fate::HeldByFinalizer {
            finalizers: pod.sight.finalizers.clone(),
        },
        Some(until) if now.earliest < until => Fate::Ending { until },
        Some(since) => Fate::Terminating {
            since,
            name_held: pod.holds_its_name,
        },
        None if pod.finished => return None,
        None if place.health == Health::Gone => Fate::Collected,
        None if place.taints.is_empty() => Fate::Unevicted,
        None => eviction(pod, &place.taints, now),
    })
}

/// When the taint-eviction controller tells the pod to end: at once for a taint that it does not
/// tolerate, else after the shortest time that one of the tolerations used sets.
fn eviction(pod: &Pod, taints: &[NoExecute], now: Now) -> Fate {
    let ends = taints.iter().filter_map(|taint| {
        let added = taint.added.unwrap_or(now.latest);
        let mut used = pod
            .tolerations
            .iter()
            .filter(|toleration| taint.is_tolerated_by(toleration));
        match used.next() {
            None => Some(added),
            Some(toleration) => {
                let seconds = toleration.toleration_seconds?.max(0);
                Some(added + Span::micros(seconds.saturating_mul(1_000_000)))
            }
        }
    });
    ends.min()
        .map_or(Fate::NeverEvicted, |at| Fate::Evicted { at })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Toleration;

    use super::*;
    use crate::facts::PodSight;

    const NOW: Instant = Instant::from_micros(1_000_000_000);
    const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

    fn ago(seconds: u32) -> Instant {
        NOW - Span::seconds(seconds)
    }

    fn pod() -> Pod {
        Pod {
            sight: PodSight::default(),
            owner: Some("StatefulSet/web".to_owned()),
            holds_its_name: true,
            tolerations: Vec::new(),
            claims: Vec::new(),
            finished: false,
        }
    }

    fn silent(taints: &[(&str, u32)]) -> Place {
        Place {
            health: Health::Unreachable { since: None },
            taints: taints
                .iter()
                .map(|&(key, added)| NoExecute {
                    key: key.to_owned(),
                    value: String::new(),
                    added: Some(ago(added)),
                })
                .collect(),
        }
    }

    fn tolerates(key: &str, seconds: Option<i64>) -> Toleration {
        Toleration {
            key: (!key.is_empty()).then(|| key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some("NoExecute".to_owned()),
            toleration_seconds: seconds,
            ..Toleration::default()
        }
    }

    fn at(pod: &Pod, place: &Place) -> Option<Fate> {
        fate(pod, place, Now::at(NOW))
    }

    #[test]
    fn a_toleration_says_when_it_is_evicted() {
        let evicted = |seconds: i64| Fate::Evicted {
            at: NOW + Span::micros(seconds * 1_000_000),
        };
        let down = silent(&[(UNREACHABLE, 108)]);
        let both = silent(&[(UNREACHABLE, 108), ("example.com/other", 50)]);
        for (tolerations, place, expected) in [
            (vec![], &down, evicted(-108)),
            (vec![tolerates(UNREACHABLE, Some(300))], &down, evicted(192)),
            (vec![tolerates(UNREACHABLE, Some(60))], &down, evicted(-48)),
            (vec![tolerates(UNREACHABLE, Some(-5))], &down, evicted(-108)),
            (
                vec![tolerates(UNREACHABLE, None)],
                &down,
                Fate::NeverEvicted,
            ),
            (vec![tolerates("", None)], &both, Fate::NeverEvicted),
            // The first that tolerates a taint counts, as in Kubernetes.
            (
                vec![tolerates("", None), tolerates(UNREACHABLE, Some(300))],
                &down,
                Fate::NeverEvicted,
            ),
            (vec![tolerates("other", None)], &down, evicted(-108)),
            // Every taint is to be tolerated.
            (vec![tolerates(UNREACHABLE, Some(300))], &both, evicted(-50)),
            (vec![], &silent(&[]), Fate::Unevicted),
        ] {
            let pod = Pod {
                tolerations,
                ..pod()
            };
            assert_eq!(at(&pod, place), Some(expected), "{:?}", pod.tolerations);
        }
    }

    #[test]
    fn a_deletion_is_told_by_how_far_it_came() {
        let deleted = |at, grace| Pod {
            sight: PodSight {
                ends: Some(at),
                grace,
                ..PodSight::default()
            },
            ..pod()
        };
        let down = silent(&[(UNREACHABLE, 900)]);
        let soon = NOW + Span::seconds(20);
        assert_eq!(
            at(&deleted(soon, 30), &down),
            Some(Fate::Ending { until: soon })
        );
        let stuck = |name_held| Fate::Terminating {
            since: ago(540),
            name_held,
        };
        assert_eq!(at(&deleted(ago(540), 30), &down), Some(stuck(true)));
        let mut replaced = deleted(ago(540), 30);
        replaced.holds_its_name = false;
        assert_eq!(at(&replaced, &down), Some(stuck(false)));
        let finalizers = vec!["example.com/backup".to_owned()];
        let mut held = deleted(ago(540), 0);
        held.sight.finalizers.clone_from(&finalizers);
        assert_eq!(at(&held, &down), Some(Fate::HeldByFinalizer { finalizers }));
        // Before its end is confirmed, the finalizer is not what it waits for.
        held.sight.grace = 30;
        assert_eq!(at(&held, &down), Some(stuck(true)));
    }

    #[test]
    fn where_the_node_is_gone_it_is_collected() {
        assert_eq!(at(&pod(), &Place::gone()), Some(Fate::Collected));
    }

    #[test]
    fn what_has_finished_is_in_nobodys_way() {
        let finished = Pod {
            finished: true,
            ..pod()
        };
        assert_eq!(at(&finished, &silent(&[(UNREACHABLE, 9)])), None);
    }
}
