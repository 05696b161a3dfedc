//! The health of a node, derived from its conditions, its kubelet's heartbeat, its taints and our record.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use maintenance_lease::protocol::{Instant, Now, Span};

use crate::bugs::{self, Bug};
use crate::constants::{HEARTBEAT_DURATION, HEARTBEAT_RENEWALS};
use crate::fencing::Machine;
use crate::fencing::record::{ANNOTATION, Record, Since};
use crate::known::{Known, Why};
use crate::taint::{OutOfService, taints};
use crate::wire::instant;
use crate::words::age;

/// Extra time for a late renewal.
const WATCH_MARGIN: Duration = Duration::from_secs(2);

/// The health of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Its Ready condition is True. Its heartbeat may be old, but it is not reported as unreachable yet.
    Ready,
    /// Something is wrong with it, but it is not known to be unreachable.
    NotReady {
        /// Its kubelet is alive and reports the problem itself.
        reporting: bool,
    },
    /// It is unreachable. It may be dead, or it may still run behind a broken network.
    Unreachable {
        /// Since when Kubernetes reports it as unreachable.
        since: Option<Instant>,
    },
    /// It is unreachable, and somebody asserts that nothing runs there any more (the out-of-service taint).
    OutOfService {
        /// Who asserts it, if our record says so.
        by: Option<String>,
        /// What happened to the node since it was recorded.
        since: Option<Since>,
    },
    /// It was fenced and has been restarted since. Its kubelet is alive, and the processes from before are
    /// gone. You only need to unfence it.
    Restarted {
        /// Who fenced it.
        by: String,
    },
    /// Somebody asserts that nothing runs there, but its kubelet is alive. It runs the boot that was fenced,
    /// or a boot that nobody recorded.
    KubeletAlive {
        /// Who asserts it, if our record says so.
        by: Option<String>,
    },
    /// There is no such Node.
    Gone,
}

impl Health {
    /// Since when the node is unreachable, if it is and the time is known.
    #[must_use]
    pub fn unreachable_since(&self) -> Option<Instant> {
        match self {
            Self::Unreachable { since } => *since,
            _ => None,
        }
    }
}

/// The heartbeat of a kubelet, from its Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// When the kubelet renewed it by its own clock, or when it was observed to change.
    pub at: Instant,
    /// The age at which the kubelet no longer counts as alive.
    pub duration: Span,
}

impl From<Instant> for Heartbeat {
    /// A heartbeat with the default duration.
    fn from(at: Instant) -> Self {
        Self {
            at,
            duration: HEARTBEAT_DURATION,
        }
    }
}

impl Heartbeat {
    /// The age of the heartbeat; zero if it is in the future.
    #[must_use]
    pub fn age(self, now: Now) -> Span {
        (now.earliest - self.at).max(Span::ZERO)
    }

    /// How long to watch it. A live kubelet renews it within this time; a margin for the request is included.
    #[must_use]
    pub fn watch_time(self) -> Duration {
        let micros = u64::try_from(self.duration.as_micros()).unwrap_or(0);
        Duration::from_micros(micros / u64::from(HEARTBEAT_RENEWALS)) + WATCH_MARGIN
    }

    /// How far it is ahead of the clock, if that is too far to trust it.
    fn ahead(self, now: Now) -> Option<Span> {
        Some(self.at - now.latest).filter(|by| *by > self.duration)
    }
}

/// What a Node and its heartbeat show: its readiness, its taint and the record of its fencing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeState {
    /// Its Ready condition; `None` if it never had one.
    pub ready: Option<Ready>,
    /// Its kubelet's heartbeat; `None` if it has none.
    pub heartbeat: Known<Option<Heartbeat>>,
    /// When its kubelet last reported a condition. It does so only every few minutes.
    pub reported: Option<Instant>,
    /// Its out-of-service taints.
    pub out_of_service: OutOfService,
    /// Our record of its fencing.
    pub record: Option<Record>,
    /// What happened to the node since it was recorded.
    pub since: Option<Since>,
}

/// A Ready condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The status of the condition.
    pub status: Status,
    /// When the status last changed.
    pub since: Option<Instant>,
}

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The condition is met.
    True,
    /// The condition is not met.
    False,
    /// It is unknown whether the condition is met.
    Unknown,
}

impl NodeState {
    /// The state of `node`, with the heartbeat of its kubelet.
    #[must_use]
    pub fn of(node: &Node, heartbeat: Known<Option<Heartbeat>>) -> Self {
        let conditions = node
            .status
            .as_ref()
            .and_then(|status| status.conditions.as_deref())
            .unwrap_or_default();
        let ready = conditions
            .iter()
            .find(|condition| condition.type_ == "Ready")
            .map(|condition| Ready {
                status: match &*condition.status {
                    "True" => Status::True,
                    "False" => Status::False,
                    _ => Status::Unknown,
                },
                since: condition.last_transition_time.as_ref().map(instant),
            });
        let reports = conditions
            .iter()
            .filter_map(|condition| condition.last_heartbeat_time.as_ref().map(instant));
        let record = node
            .metadata
            .annotations
            .as_ref()
            .and_then(|annotations| Record::parse(annotations.get(ANNOTATION)?));
        let machine = Machine::of(node);
        Self {
            ready,
            heartbeat,
            reported: reports.max(),
            out_of_service: OutOfService::of(taints(node)),
            since: record.as_ref().map(|record| record.since(&machine)),
            record,
        }
    }

    /// Whether a recorded fencing is in effect. The Node must have the out-of-service taint, and it must be
    /// known that the machine has not been restarted since the record.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        (self.since == Some(Since::SameBoot) || bugs::active(Bug::RecordOfAnyBoot))
            && self.out_of_service.is_asserted()
    }

    /// The heartbeat, unless it is inconclusive. See [`trusted`].
    #[must_use]
    pub fn trusted_heartbeat(&self, now: Now) -> Known<Option<Heartbeat>> {
        trusted(&self.heartbeat, now)
    }

    /// Whether the kubelet has a fresh heartbeat; `None` if this is unknown. If there is no usable heartbeat,
    /// a fresh report of a condition counts instead. An old report proves nothing, because conditions are
    /// rarely reported.
    #[must_use]
    pub fn is_fresh(&self, now: Now) -> Option<bool> {
        match self.trusted_heartbeat(now) {
            Known::Yes(heartbeat) => Some(is_fresh(heartbeat.or(self.last_report()), now)),
            Known::Unknown(_) => is_fresh(self.last_report(), now).then_some(true),
        }
    }

    /// Whether the kubelet is alive; `None` if this is unknown. If its heartbeat is unknown or inconclusive,
    /// the Ready condition counts, because the control plane sets it to Unknown if it gets no heartbeat. If a
    /// kubelet has no heartbeat and last reported its node as not ready, it may be alive or not.
    #[must_use]
    pub fn kubelet_state(&self, now: Now) -> Option<KubeletState> {
        if self.is_fresh(now) == Some(true) {
            return Some(KubeletState::Alive);
        }
        match (self.trusted_heartbeat(now), self.status()) {
            (Known::Unknown(_), Some(Status::True | Status::False)) => Some(KubeletState::Alive),
            (Known::Unknown(_), _) | (Known::Yes(None), Some(Status::False) | None) => None,
            (Known::Yes(heartbeat), status) => {
                let heartbeat = heartbeat.or(self.last_report());
                Some(kubelet_state(status == Some(Status::True), heartbeat, now))
            }
        }
    }

    /// The last report of a condition, as a heartbeat with the default duration.
    fn last_report(&self) -> Option<Heartbeat> {
        self.reported.map(Heartbeat::from)
    }

    /// The heartbeat to watch for a change before its node counts as unreachable. The heartbeat is old or
    /// ahead, but the kubelet may be alive with a wrong clock. The control plane counts changes. So if it has
    /// not set the Ready condition to Unknown, an old heartbeat is suspicious at any age.
    #[must_use]
    pub fn to_watch(&self, now: Now) -> Option<Heartbeat> {
        let heartbeat = self.heartbeat.value().copied().flatten()?;
        let is_near = heartbeat.at + heartbeat.duration + heartbeat.duration > now.earliest;
        let is_doubtful = is_near || self.status() != Some(Status::Unknown);
        (is_doubtful && !is_fresh(Some(heartbeat), now)).then_some(heartbeat)
    }

    /// The status of its Ready condition; `None` if it has none.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        self.ready.map(|ready| ready.status)
    }

    /// The health of the node at `now`.
    #[must_use]
    pub fn health(&self, now: Now) -> Health {
        let kubelet_state = self.kubelet_state(now);
        if self.out_of_service.is_asserted() {
            let by = self.record.as_ref().map(|record| record.who.clone());
            return match (kubelet_state, self.since, by) {
                (
                    Some(KubeletState::Alive | KubeletState::Late),
                    Some(Since::Restarted),
                    Some(by),
                ) => Health::Restarted { by },
                (Some(KubeletState::Alive | KubeletState::Late), _, by) => {
                    Health::KubeletAlive { by }
                }
                (Some(KubeletState::Unreachable) | None, since, by) => {
                    Health::OutOfService { by, since }
                }
            };
        }
        let reporting = kubelet_state == Some(KubeletState::Alive);
        match self.ready {
            Some(Ready {
                status: Status::True,
                ..
            }) => Health::Ready,
            Some(Ready {
                status: Status::Unknown,
                since,
            }) if !reporting => Health::Unreachable { since },
            _ => Health::NotReady { reporting },
        }
    }
}

/// Whether a kubelet is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KubeletState {
    /// Its heartbeat is fresh, even if its node is not ready.
    Alive,
    /// Its heartbeat is old, but the control plane has not reported its node as unreachable yet.
    Late,
    /// Its heartbeat is not fresh, and its node is not ready.
    Unreachable,
}

/// Whether a kubelet is alive, judged by its last heartbeat (`None` if it has none) and the readiness of its
/// node. This is the only place that decides whether a node is unreachable. If the heartbeat is missing or
/// inconclusive, only `is_ready` counts.
#[must_use]
pub fn kubelet_state(is_ready: bool, heartbeat: Option<Heartbeat>, now: Now) -> KubeletState {
    match (is_ready, heartbeat.filter(|one| one.ahead(now).is_none())) {
        (_, Some(_))
            if is_fresh(heartbeat, now) && (is_ready || !bugs::active(Bug::HeartbeatIgnored)) =>
        {
            KubeletState::Alive
        }
        (true, None) => KubeletState::Alive,
        (true, Some(_)) => KubeletState::Late,
        (false, _) => KubeletState::Unreachable,
    }
}

/// Whether a heartbeat is recent enough that its kubelet counts as alive. A heartbeat that is ahead of the
/// clock by more than its duration does not count: it would look fresh until that time comes.
#[must_use]
pub fn is_fresh(heartbeat: Option<Heartbeat>, now: Now) -> bool {
    heartbeat.is_some_and(|heartbeat| {
        let is_ahead = heartbeat.ahead(now).is_some() && !bugs::active(Bug::FutureHeartbeatIsFresh);
        let now = match bugs::active(Bug::HeartbeatByLatestClock) {
            true => now.latest,
            false => now.earliest,
        };
        now - heartbeat.at < heartbeat.duration && !is_ahead
    })
}

/// `heartbeat`, or unknown if it is inconclusive at `now`. If the kubelet's clock is far ahead, nobody knows
/// when the kubelet renewed it.
#[must_use]
pub fn trusted(heartbeat: &Known<Option<Heartbeat>>, now: Now) -> Known<Option<Heartbeat>> {
    match heartbeat {
        Known::Yes(Some(at)) => match at.ahead(now) {
            Some(by) => Known::Unknown(Why::Inconclusive(format!(
                "its heartbeat is {} ahead of the clock",
                age(by)
            ))),
            None => heartbeat.clone(),
        },
        _ => heartbeat.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constants::OUT_OF_SERVICE;

    const NOW: Instant = Instant::from_micros(1_000_000_000);

    fn ago(seconds: u32) -> Instant {
        NOW - Span::seconds(seconds)
    }

    fn state(ready: Option<Status>, heartbeat: Known<Option<Heartbeat>>) -> NodeState {
        NodeState {
            ready: ready.map(|status| Ready {
                status,
                since: Some(ago(540)),
            }),
            heartbeat,
            ..NodeState::default()
        }
    }

    #[test]
    fn an_old_heartbeat_means_unreachable_and_a_fresh_one_not_ready() {
        use Status::{False, True, Unknown};
        let unread = || Known::Unknown(Why::Forbidden("get leases".to_owned()));
        let beat = |seconds| Known::Yes(Some(ago(seconds).into()));
        let partitioned = Health::Unreachable {
            since: Some(ago(540)),
        };
        let not_ready = |reporting| Health::NotReady { reporting };
        for (ready, heartbeat, expected) in [
            (Some(True), beat(5), Health::Ready),
            (Some(True), beat(600), Health::Ready),
            (Some(True), unread(), Health::Ready),
            (Some(False), beat(39), not_ready(true)),
            (Some(False), beat(40), not_ready(false)),
            (Some(False), unread(), not_ready(true)),
            (Some(False), Known::Yes(None), not_ready(false)),
            (Some(Unknown), beat(39), not_ready(true)),
            (Some(Unknown), beat(40), partitioned.clone()),
            (Some(Unknown), Known::Yes(None), partitioned.clone()),
            (Some(Unknown), unread(), partitioned),
            (None, beat(5), not_ready(true)),
            (None, Known::Yes(None), not_ready(false)),
            (
                Some(Unknown),
                Known::Yes(Some(Instant::UNREADABLE.into())),
                Health::Unreachable {
                    since: Some(ago(540)),
                },
            ),
        ] {
            let state = state(ready, heartbeat);
            assert_eq!(state.health(Now::at(NOW)), expected, "{state:?}");
        }
    }

    #[test]
    fn a_node_is_unreachable_if_it_is_not_ready_and_has_no_fresh_heartbeat() {
        let of = |is_ready, age: Option<u32>| {
            kubelet_state(is_ready, age.map(|age| ago(age).into()), Now::at(NOW))
        };
        for (is_ready, age, expected) in [
            (true, Some(39), KubeletState::Alive),
            (true, Some(40), KubeletState::Late),
            (true, None, KubeletState::Alive),
            (false, Some(39), KubeletState::Alive),
            (false, Some(40), KubeletState::Unreachable),
            (false, None, KubeletState::Unreachable),
        ] {
            assert_eq!(of(is_ready, age), expected, "{is_ready} {age:?}");
        }
    }

    #[test]
    fn a_condition_that_was_just_reported_is_a_sign_of_life_and_an_old_one_is_none_of_death() {
        use Status::{False, Unknown};
        let unread = || Known::Unknown(Why::Forbidden("get leases".to_owned()));
        for (ready, heartbeat, reported, expected) in [
            (Unknown, unread(), 39, Some(KubeletState::Alive)),
            (Unknown, unread(), 40, None),
            (False, unread(), 40, Some(KubeletState::Alive)),
            (Unknown, Known::Yes(None), 39, Some(KubeletState::Alive)),
            (
                Unknown,
                Known::Yes(None),
                40,
                Some(KubeletState::Unreachable),
            ),
            // A kubelet reported the node as not ready. Without a heartbeat it is unknown when the kubelet
            // stopped reporting.
            (False, Known::Yes(None), 39, Some(KubeletState::Alive)),
            (False, Known::Yes(None), 60, None),
            (
                False,
                Known::Yes(Some(ago(40).into())),
                60,
                Some(KubeletState::Unreachable),
            ),
            // If there is a heartbeat, only the heartbeat counts.
            (
                Unknown,
                Known::Yes(Some(ago(40).into())),
                5,
                Some(KubeletState::Unreachable),
            ),
        ] {
            let state = NodeState {
                reported: Some(ago(reported)),
                ..state(Some(ready), heartbeat)
            };
            assert_eq!(state.kubelet_state(Now::at(NOW)), expected, "{state:?}");
        }
    }

    #[test]
    fn a_heartbeat_far_ahead_of_the_clock_shows_neither_alive_nor_unreachable() {
        use Status::{False, True, Unknown};
        let ahead = |seconds| Known::Yes(Some((NOW + Span::seconds(seconds)).into()));
        for (ready, heartbeat, fresh, expected) in [
            (
                Some(Unknown),
                ahead(40),
                Some(true),
                Some(KubeletState::Alive),
            ),
            (Some(Unknown), ahead(41), None, None),
            (Some(False), ahead(41), None, Some(KubeletState::Alive)),
            (Some(True), ahead(41), None, Some(KubeletState::Alive)),
            (None, ahead(41), None, None),
        ] {
            let state = state(ready, heartbeat);
            let now = Now::at(NOW);
            let found = (state.is_fresh(now), state.kubelet_state(now));
            assert_eq!(found, (fresh, expected), "{state:?}");
        }
        let ahead = Some((NOW + Span::seconds(41)).into());
        assert_eq!(
            kubelet_state(true, ahead, Now::at(NOW)),
            KubeletState::Alive
        );
        assert_eq!(
            kubelet_state(false, ahead, Now::at(NOW)),
            KubeletState::Unreachable
        );
    }

    #[test]
    fn of_a_node_without_heartbeat_and_conditions_nothing_is_known() {
        let never = state(None, Known::Yes(None));
        assert_eq!(never.kubelet_state(Now::at(NOW)), None);
    }

    #[test]
    fn the_earliest_clock_says_how_old_a_heartbeat_is() {
        let state = state(Some(Status::Unknown), Known::Yes(Some(ago(39).into())));
        let now = Now::between(NOW, NOW + Span::seconds(60));
        assert_eq!(state.is_fresh(now), Some(true));
    }

    #[test]
    fn a_heartbeat_lasts_as_long_as_its_lease_says() {
        let of = |duration, age| {
            let heartbeat = Heartbeat {
                at: ago(age),
                duration: Span::seconds(duration),
            };
            is_fresh(Some(heartbeat), Now::at(NOW))
        };
        assert!(of(120, 119) && !of(120, 120));
        assert!(of(10, 9) && !of(10, 10));
        let watched = Heartbeat::from(NOW).watch_time();
        assert_eq!(watched, Duration::from_secs(10) + WATCH_MARGIN);
    }

    #[test]
    fn a_heartbeat_that_is_hardly_old_or_contradicts_the_control_plane_is_watched_first() {
        use Status::{False, True, Unknown};
        for (ready, age, expected) in [
            (Some(Unknown), 39, false),
            (Some(Unknown), 40, true),
            (Some(Unknown), 79, true),
            (Some(Unknown), 80, false),
            (Some(False), 600, true),
            (Some(True), 600, true),
            (None, 600, true),
        ] {
            let state = state(ready, Known::Yes(Some(ago(age).into())));
            let is_watched = state.to_watch(Now::at(NOW)).is_some();
            assert_eq!(is_watched, expected, "{ready:?} {age}");
        }
        let ahead = Known::Yes(Some((NOW + Span::seconds(41)).into()));
        let ahead = state(Some(Unknown), ahead);
        assert!(ahead.to_watch(Now::at(NOW)).is_some());
        for heartbeat in [Known::Yes(None), Known::Unknown(Why::NotRead)] {
            assert_eq!(state(Some(False), heartbeat).to_watch(Now::at(NOW)), None);
        }
    }

    #[test]
    fn a_taint_on_a_live_node_is_a_mistake() {
        let fenced = |ready, heartbeat| {
            let state = NodeState {
                out_of_service: OutOfService::Asserted,
                ..state(Some(ready), heartbeat)
            };
            state.health(Now::at(NOW))
        };
        let unread = || Known::Unknown(Why::NotRead);
        let unreachable = Health::OutOfService {
            by: None,
            since: None,
        };
        let live = Health::KubeletAlive { by: None };
        assert_eq!(
            fenced(Status::Unknown, Known::Yes(Some(ago(90).into()))),
            unreachable
        );
        assert_eq!(fenced(Status::Unknown, unread()), unreachable);
        assert_eq!(
            fenced(Status::Unknown, Known::Yes(Some(ago(9).into()))),
            live
        );
        assert_eq!(fenced(Status::False, unread()), live);
        assert_eq!(fenced(Status::True, Known::Yes(Some(ago(90).into()))), live);
    }

    #[test]
    fn a_live_node_is_expected_if_it_was_restarted_since_it_was_fenced() {
        let record = Record::example();
        let by = || "alice".to_owned();
        let mistake = || Health::KubeletAlive { by: Some(by()) };
        let unreachable = Known::Yes(Some(ago(90).into()));
        for (status, heartbeat, since, expected) in [
            (
                Status::True,
                ago(9),
                Since::Restarted,
                Health::Restarted { by: by() },
            ),
            (
                Status::False,
                ago(9),
                Since::Restarted,
                Health::Restarted { by: by() },
            ),
            (Status::True, ago(9), Since::SameBoot, mistake()),
            (Status::True, ago(9), Since::Unknown, mistake()),
            (Status::True, ago(9), Since::NewNode, mistake()),
        ] {
            let state = NodeState {
                out_of_service: OutOfService::Asserted,
                record: Some(record.clone()),
                since: Some(since),
                ..state(Some(status), Known::Yes(Some(heartbeat.into())))
            };
            assert_eq!(state.health(Now::at(NOW)), expected, "{state:?}");
        }
        let state = NodeState {
            out_of_service: OutOfService::Asserted,
            record: Some(record),
            since: Some(Since::Restarted),
            ..state(Some(Status::Unknown), unreachable)
        };
        let since = Some(Since::Restarted);
        let by = Some(by());
        assert_eq!(
            state.health(Now::at(NOW)),
            Health::OutOfService { by, since }
        );
    }

    #[test]
    fn a_record_counts_only_for_its_node_and_boot_while_the_taint_is_set() {
        for (since, out_of_service, is_fenced) in [
            (Some(Since::SameBoot), OutOfService::Asserted, true),
            (Some(Since::NewNode), OutOfService::Asserted, false),
            (Some(Since::Restarted), OutOfService::Asserted, false),
            (Some(Since::Unknown), OutOfService::Asserted, false),
            (None, OutOfService::Asserted, false),
            (Some(Since::SameBoot), OutOfService::No, false),
        ] {
            let state = NodeState {
                out_of_service,
                since,
                ..state(Some(Status::Unknown), Known::Yes(None))
            };
            assert_eq!(state.is_fenced(), is_fenced, "{state:?}");
        }
    }

    #[test]
    fn signs_are_read_from_a_node_as_the_server_sends_it() {
        let node: Node = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "worker-1", "uid": "u", "annotations": {ANNOTATION:
                r#"{"who":"alice","when":"1970-01-01T00:00:00Z","how":{"poweredOff":"dark"},"nodeUid":"u"}"#}},
            "spec": {"taints": [{"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}]},
            "status": {"conditions": [
                {"type": "DiskPressure", "status": "False", "lastHeartbeatTime": "1970-01-01T00:07:30Z"},
                {"type": "Ready", "status": "Unknown", "lastTransitionTime": "1970-01-01T00:07:40Z"},
            ]},
        }))
        .expect("a Node");
        let state = NodeState::of(&node, Known::Yes(None));
        assert_eq!(
            state.ready,
            Some(Ready {
                status: Status::Unknown,
                since: Some(ago(540)),
            })
        );
        assert_eq!(state.reported, Some(ago(550)));
        assert_eq!(
            state.health(Now::at(NOW)),
            Health::OutOfService {
                by: Some("alice".to_owned()),
                since: Some(Since::Unknown),
            }
        );
    }
}
