//! `node-alive`, `node-unreachable`, `node-gone` and `fenced`: whether anything can still run on the node.

use maintenance_lease::protocol::Now;

use super::verdict::Verdict;
use crate::constants::POD_GC;
use crate::facts::{Fenced, NodeFacts, PodConditions, PresentNode};
use crate::fencing::record::Record;
use crate::known::{Known, Why};
use crate::node_health::{Health, Heartbeat, KubeletState, NodeState, Status, is_fresh, trusted};
use crate::words::age;

/// The kubelet of the node is alive.
pub const NODE_ALIVE: &str = "node-alive";
pub(crate) const UNREACHABLE: &str = "node-unreachable";
const GONE: &str = "node-gone";
const LET_KUBELET_END: &str = "let the kubelet end the pods";
pub(crate) const FENCED: &str = "fenced";

/// Whether the node is alive. The Node itself shows it. If there is no Node or it can't be read, the
/// heartbeat and the `conditions` of one of its pods do.
pub(super) fn check(
    facts: &NodeFacts,
    conditions: Option<&PodConditions>,
    now: Now,
) -> Vec<Verdict> {
    match &facts.node {
        Known::Yes(Some(node)) => {
            let mut verdicts = of_present(node, now);
            verdicts.extend(fenced(node, now));
            verdicts
        }
        Known::Yes(None) => of_gone(&facts.heartbeat, now),
        Known::Unknown(why) => vec![of_unread(&facts.heartbeat, conditions, why, now)],
    }
}

/// The verdict on a pod that was never scheduled.
pub(super) fn none() -> Verdict {
    Verdict::ok(
        UNREACHABLE,
        "it was never scheduled to a node, so nothing is running",
    )
}

fn of_present(node: &PresentNode, now: Now) -> Vec<Verdict> {
    let state = &node.state;
    let heartbeat = &state.heartbeat;
    let alive = |words: &str, to_do: &str| vec![alive(words, heartbeat, to_do, now)];
    let described = described(state, now);
    match (state.health(now), state.kubelet_state(now)) {
        (Health::Restarted { .. }, _) => alive(
            "the node was restarted since it was fenced, and its kubelet is alive",
            "unfence it",
        ),
        (Health::KubeletAlive { .. }, _) => alive(
            "the node has the out-of-service taint, but its kubelet is alive",
            LET_KUBELET_END,
        ),
        (Health::Ready, Some(KubeletState::Late)) => {
            alive("the node still counts as ready", LET_KUBELET_END)
        }
        (Health::Ready, _) => alive(
            "the node is ready, so its kubelet is alive",
            LET_KUBELET_END,
        ),
        (_, Some(KubeletState::Alive)) if state.is_fresh(now) == Some(true) => alive(
            "the node is not ready, but its kubelet is alive",
            LET_KUBELET_END,
        ),
        (_, Some(KubeletState::Alive)) => alive(
            "the kubelet itself reports the node as not ready, so the kubelet is alive",
            LET_KUBELET_END,
        ),
        (_, None) => vec![Verdict::unread_beside(
            NODE_ALIVE,
            &described,
            "whether its kubelet is alive",
            &why_unknown(state, now),
        )],
        (_, Some(KubeletState::Late | KubeletState::Unreachable)) => vec![Verdict::info(
            UNREACHABLE,
            match node.fenced(now) {
                Fenced::Recorded(record) if !record.how.is_isolated() => {
                    format!("{described}; it was fenced")
                }
                _ => format!(
                    "{described}, and {}: its pods may still be running",
                    heartbeat_age(heartbeat, now)
                ),
            },
        )],
    }
}

/// Describes a node that is not ready: as unreachable if the control plane gets no heartbeat, otherwise as
/// its kubelet reported it.
fn described(state: &NodeState, now: Now) -> String {
    let since = state.ready.and_then(|ready| ready.since);
    let long = since.map_or_else(String::new, |since| {
        format!(" for {}", age(now.earliest - since))
    });
    match state.status() {
        Some(Status::Unknown) if long.is_empty() => "the node is unreachable".to_owned(),
        Some(Status::Unknown) => format!("the node has been unreachable{long}"),
        Some(Status::True | Status::False) => {
            format!("the kubelet has reported the node as not ready{long}")
        }
        None => "the node has no Ready condition".to_owned(),
    }
}

/// Why it is not known whether the kubelet is alive.
fn why_unknown(state: &NodeState, now: Now) -> Why {
    match state.trusted_heartbeat(now) {
        Known::Unknown(why) => why,
        Known::Yes(_) => Why::Inconclusive("it has no heartbeat".to_owned()),
    }
}

/// The blocker for a live kubelet: how old its `heartbeat` is, how old it may be, and what to do.
fn alive(words: &str, heartbeat: &Known<Option<Heartbeat>>, to_do: &str, now: Now) -> Verdict {
    let heartbeat = match trusted(heartbeat, now) {
        Known::Yes(Some(last)) => format!(
            "last heartbeat {} ago, limit {}",
            age(last.age(now)),
            age(last.duration)
        ),
        _ => heartbeat_age(heartbeat, now),
    };
    Verdict::blocker(NODE_ALIVE, format!("{words} ({heartbeat}): {to_do}"))
}

/// Describes the age of a heartbeat.
fn heartbeat_age(heartbeat: &Known<Option<Heartbeat>>, now: Now) -> String {
    match trusted(heartbeat, now) {
        Known::Yes(Some(renewed)) => {
            format!("its last heartbeat is {} old", age(renewed.age(now)))
        }
        Known::Yes(None) => "it has no heartbeat".to_owned(),
        Known::Unknown(Why::Inconclusive(words)) => words,
        Known::Unknown(why) => format!("its heartbeat is unknown: {why}"),
    }
}

fn fenced(node: &PresentNode, now: Now) -> Option<Verdict> {
    Some(match node.fenced(now) {
        Fenced::No => return None,
        Fenced::Unproven => Verdict::info(
            FENCED,
            "the node has the out-of-service taint, but no valid record of who fenced the node and how",
        ),
        Fenced::Recorded(Record { who, how, .. }) => {
            let runs = match how.is_isolated() {
                true => "; it was not powered off, so its pods may still be running",
                false => "",
            };
            Verdict::ok(FENCED, format!("{who} fenced it: {how}{runs}"))
        }
    })
}

fn of_gone(heartbeat: &Known<Option<Heartbeat>>, now: Now) -> Vec<Verdict> {
    let gc = age(POD_GC);
    match trusted(heartbeat, now) {
        Known::Yes(renewed) if is_fresh(renewed, now) => vec![alive(
            "there is no such Node, but a kubelet of that name is alive",
            heartbeat,
            "power off its machine first",
            now,
        )],
        Known::Yes(_) => vec![Verdict::info(
            GONE,
            format!(
                "there is no such Node: the pod garbage collector usually deletes it within {gc}"
            ),
        )],
        Known::Unknown(why) => vec![Verdict::unread_beside(
            NODE_ALIVE,
            "there is no such Node",
            "whether a kubelet of that name is alive",
            &why,
        )],
    }
}

/// The verdict on a node that could not be read.
fn of_unread(
    heartbeat: &Known<Option<Heartbeat>>,
    conditions: Option<&PodConditions>,
    why: &Why,
    now: Now,
) -> Verdict {
    let Some(conditions) = conditions else {
        return Verdict::unread(NODE_ALIVE, "whether its kubelet is alive", why);
    };
    let alive = |words: &str, to_do: &str| alive(words, heartbeat, to_do, now);
    let heartbeat = trusted(heartbeat, now);
    if matches!(heartbeat, Known::Yes(heartbeat) if is_fresh(heartbeat, now)) {
        return alive(
            "could not read the node, but its kubelet is alive",
            LET_KUBELET_END,
        );
    }
    if conditions.ready {
        return alive(
            "could not read the node, but the pod still counts as ready",
            LET_KUBELET_END,
        );
    }
    let since = conditions.unready_since.map_or_else(String::new, |since| {
        format!(" for {}", age(now.earliest - since))
    });
    let telling = format!(
        "the pod has not been ready{since}, which does not show whether its node is unreachable"
    );
    let known = match heartbeat {
        Known::Yes(Some(renewed)) => format!(
            "{telling}; its last heartbeat is {} old",
            age(renewed.age(now))
        ),
        Known::Yes(None) => format!("{telling}; it has no heartbeat"),
        Known::Unknown(Why::Inconclusive(ahead)) => format!("{telling}; {ahead}"),
        Known::Unknown(_) => {
            return Verdict::unread_beside(NODE_ALIVE, &telling, "heartbeat of the node", why);
        }
    };
    Verdict::unread_beside(NODE_ALIVE, &known, "state of the node", why)
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::Span;

    use super::*;
    use crate::checks::Level::{self, Blocker, Info, Ok, Unread};
    use crate::checks::testing::{NOW, forbidden, record, there};
    use crate::fencing::record::Since;
    use crate::node_health::Ready;
    use crate::taint::OutOfService;

    fn ago(seconds: u32) -> Known<Option<Heartbeat>> {
        Known::Yes(Some((NOW - Span::seconds(seconds)).into()))
    }

    /// The heartbeat of a kubelet whose clock is ahead.
    fn ahead() -> Known<Option<Heartbeat>> {
        Known::Yes(Some((NOW + Span::seconds(70 * 60)).into()))
    }

    fn verdicts(
        facts: &NodeFacts,
        conditions: Option<&PodConditions>,
    ) -> Vec<(&'static str, Level)> {
        check(facts, conditions, Now::at(NOW))
            .iter()
            .map(|verdict| (verdict.id, verdict.level))
            .collect()
    }

    fn node(status: Status, heartbeat: Known<Option<Heartbeat>>) -> PresentNode {
        let mut there = there();
        there.state.heartbeat = heartbeat;
        there.state.ready = Some(Ready {
            status,
            since: Some(NOW - Span::seconds(540)),
        });
        there
    }

    fn present(node: PresentNode) -> NodeFacts {
        NodeFacts {
            node: Known::Yes(Some(node)),
            ..NodeFacts::default()
        }
    }

    /// The facts about a Node that the user may not read.
    fn unread(heartbeat: Known<Option<Heartbeat>>) -> NodeFacts {
        NodeFacts {
            node: Known::Unknown(Why::Forbidden("get nodes".to_owned())),
            heartbeat,
            ..NodeFacts::default()
        }
    }

    #[test]
    fn only_an_unreachable_node_passes() {
        for (status, heartbeat, expected) in [
            (Status::True, ago(5), (NODE_ALIVE, Blocker)),
            (Status::True, ago(90), (NODE_ALIVE, Blocker)),
            (Status::True, forbidden(), (NODE_ALIVE, Blocker)),
            (Status::False, ago(5), (NODE_ALIVE, Blocker)),
            (Status::False, ago(90), (UNREACHABLE, Info)),
            (Status::False, forbidden(), (NODE_ALIVE, Blocker)),
            (Status::Unknown, ago(39), (NODE_ALIVE, Blocker)),
            (Status::Unknown, ago(40), (UNREACHABLE, Info)),
            (Status::Unknown, Known::Yes(None), (UNREACHABLE, Info)),
            (Status::Unknown, forbidden(), (NODE_ALIVE, Unread)),
            (Status::Unknown, ahead(), (NODE_ALIVE, Unread)),
            (Status::False, Known::Yes(None), (NODE_ALIVE, Unread)),
        ] {
            let found = verdicts(&present(node(status, heartbeat.clone())), None);
            assert_eq!(found, [expected], "{status:?} {heartbeat:?}");
        }
    }

    #[test]
    fn sources_of_node_health_are_shown() {
        let words = |there: PresentNode| {
            let verdicts = check(&present(there), None, Now::at(NOW));
            verdicts[0].words.clone()
        };
        for (there, expected) in [
            (
                node(Status::Unknown, ago(90)),
                "the node has been unreachable for 9m, and its last heartbeat is 90s old",
            ),
            (
                node(Status::False, ago(90)),
                "the kubelet has reported the node as not ready for 9m, and its last heartbeat is 90s old",
            ),
            (
                node(Status::False, Known::Yes(None)),
                "the kubelet has reported the node as not ready for 9m; unknown whether its kubelet is alive: it has no heartbeat",
            ),
            (
                node(Status::Unknown, ahead()),
                "the node has been unreachable for 9m; unknown whether its kubelet is alive: its heartbeat is 70m ahead of \
                 the clock",
            ),
            (
                there(),
                "the node has no Ready condition; unknown whether its kubelet is alive: it has no heartbeat",
            ),
        ] {
            let words = words(there);
            assert!(words.starts_with(expected), "{words}");
        }
    }

    #[test]
    fn a_live_kubelet_is_reported_in_one_sentence_with_the_age_of_its_heartbeat() {
        let words = |heartbeat| {
            let verdicts = check(&present(node(Status::True, heartbeat)), None, Now::at(NOW));
            verdicts[0].words.clone()
        };
        let alive = "the node is ready, so its kubelet is alive";
        let late = "the node still counts as ready";
        for (heartbeat, state, message) in [
            (ago(1), alive, "last heartbeat 1s ago, limit 40s"),
            (ago(90), late, "last heartbeat 90s ago, limit 40s"),
            (Known::Yes(None), alive, "it has no heartbeat"),
            (ahead(), alive, "its heartbeat is 70m ahead of the clock"),
            (
                Known::Unknown(Why::NotRead),
                alive,
                "its heartbeat is unknown: ",
            ),
        ] {
            let words = words(heartbeat);
            let message = format!("{state} ({message}");
            assert!(words.starts_with(&message), "{words}");
            assert!(
                words.ends_with("): let the kubelet end the pods"),
                "{words}"
            );
            assert!(words.split(' ').count() < 25, "{words}");
        }
    }

    #[test]
    fn a_node_that_was_restarted_since_it_was_fenced_is_to_be_unfenced() {
        let mut back = node(Status::True, ago(5));
        back.state.out_of_service = OutOfService::Asserted;
        back.state.record = Some(record());
        back.state.since = Some(Since::Restarted);
        let verdicts = check(&present(back), None, Now::at(NOW));
        assert_eq!((verdicts[0].id, verdicts[0].level), (NODE_ALIVE, Blocker));
        assert_eq!(
            verdicts[0].words,
            "the node was restarted since it was fenced, and its kubelet is alive (last heartbeat 5s ago, limit 40s): unfence it"
        );
    }

    #[test]
    fn of_a_node_that_never_said_anything_nothing_is_known() {
        assert_eq!(verdicts(&present(there()), None), [(NODE_ALIVE, Unread)]);
    }

    #[test]
    fn a_missing_node_may_still_have_a_kubelet() {
        let gone = |heartbeat| {
            let facts = NodeFacts {
                node: Known::Yes(None),
                heartbeat,
                ..NodeFacts::default()
            };
            verdicts(&facts, None)
        };
        assert_eq!(gone(Known::Yes(None)), [(GONE, Info)]);
        assert_eq!(gone(ago(90)), [(GONE, Info)]);
        assert_eq!(gone(ago(5)), [(NODE_ALIVE, Blocker)]);
        assert_eq!(gone(forbidden()), [(NODE_ALIVE, Unread)]);
        assert_eq!(gone(ahead()), [(NODE_ALIVE, Unread)]);
    }

    #[test]
    fn a_fencing_counts_with_a_record_of_this_node_and_this_boot() {
        let mut fenced = node(Status::Unknown, ago(90));
        fenced.state.out_of_service = OutOfService::Asserted;
        assert_eq!(
            verdicts(&present(fenced.clone()), None),
            [(UNREACHABLE, Info), (FENCED, Info)]
        );
        fenced.state.record = Some(record());
        fenced.state.since = Some(Since::SameBoot);
        assert_eq!(
            verdicts(&present(fenced.clone()), None),
            [(UNREACHABLE, Info), (FENCED, Ok)]
        );
        for since in [Since::Restarted, Since::NewNode, Since::Unknown] {
            let mut other = fenced.clone();
            other.state.since = Some(since);
            assert_eq!(verdicts(&present(other), None)[1], (FENCED, Info));
        }
        fenced.state.heartbeat = ago(5);
        assert_eq!(
            verdicts(&present(fenced), None),
            [(NODE_ALIVE, Blocker), (FENCED, Info)]
        );
    }

    #[test]
    fn without_rights_on_nodes_the_pod_tells() {
        let unread = unread(Known::Unknown(Why::NotRead));
        let unreachable = PodConditions {
            ready: false,
            unready_since: Some(NOW - Span::seconds(540)),
        };
        assert_eq!(
            verdicts(&unread, Some(&unreachable)),
            [(NODE_ALIVE, Unread)]
        );
        let words = &check(&unread, Some(&unreachable), Now::at(NOW))[0].words;
        assert!(
            words.contains(
                "not been ready for 9m, which does not show whether its node is unreachable"
            ),
            "{words}"
        );
        let ready = PodConditions {
            ready: true,
            ..unreachable
        };
        assert_eq!(verdicts(&unread, Some(&ready)), [(NODE_ALIVE, Blocker)]);
        assert_eq!(verdicts(&unread, None), [(NODE_ALIVE, Unread)]);
    }

    #[test]
    fn a_heartbeat_counts_if_the_node_was_not_read() {
        let conditions = PodConditions::default();
        for (heartbeat, expected) in [
            (ago(5), (NODE_ALIVE, Blocker)),
            (ago(90), (NODE_ALIVE, Unread)),
            (ahead(), (NODE_ALIVE, Unread)),
            (Known::Yes(None), (NODE_ALIVE, Unread)),
        ] {
            let found = verdicts(&unread(heartbeat.clone()), Some(&conditions));
            assert_eq!(found, [expected], "{heartbeat:?}");
        }
    }
}
