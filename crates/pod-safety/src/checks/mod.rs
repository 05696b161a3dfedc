//! The checks: each examines facts and returns verdicts. They are pure; the current time is an argument.

mod budgets;
mod devices;
mod finalizers;
mod grace;
mod lease;
mod mass_loss;
mod mirror;
mod node;
mod owner;
mod quorum;
mod rights;
mod target;
#[cfg(test)]
mod testing;
mod verdict;
mod volumes;

pub use grace::{IN_GRACE, NOT_DELETING};
pub use lease::{LEASE, REMEDIATION};
pub use node::NODE_ALIVE;
pub(crate) use node::{FENCED, UNREACHABLE};
pub use rights::RIGHTS;
pub use verdict::{Level, UNREAD, Verdict};

use maintenance_lease::protocol::Now;

use crate::bugs::{self, Bug};
use crate::facts::{Facts, Fenced, NodeFacts, PodConditions};
use crate::known::Known;

/// The ids of the risks that `--accept-risk` accepts.
pub const RISKS: [&str; 9] = [
    "owner",
    "no-owner",
    "quorum",
    "volume-attached",
    "volume-unguarded",
    volumes::DELETED,
    "mass-loss",
    "lease-expired",
    UNREAD,
];

/// The ids of blockers that `--override` accepts.
pub const BLOCKERS: [&str; 6] = [
    NOT_DELETING,
    IN_GRACE,
    NODE_ALIVE,
    LEASE,
    REMEDIATION,
    RIGHTS,
];

/// The ids of the checks of a pod's node: the result is the same for all of its pods.
pub const OF_NODE: [&str; 8] = [
    NODE_ALIVE,
    UNREACHABLE,
    "node-gone",
    FENCED,
    "mass-loss",
    LEASE,
    "lease-expired",
    REMEDIATION,
];

/// The ids of the risks that remain while processes run on the node. Cutting the node off does not remove
/// them.
const OF_PROCESSES: [&str; 3] = ["owner", "no-owner", "quorum"];

/// The ids of blockers that can't be overridden.
pub const FINAL: [&str; 2] = ["target", "mirror"];

/// The ids of the informational checks, which need no confirmation.
pub const INFOS: [&str; 6] = [
    "node-unreachable",
    "node-gone",
    "fenced",
    "lease-deleted",
    "finalizers",
    "pdb",
];

/// All verdicts on a pod that is to be force-deleted. `first` is the uid in the first report, if there was
/// one already.
#[must_use]
pub fn of_pod(facts: &Facts, first: Option<&str>, now: Now) -> Vec<Verdict> {
    let mut verdicts = vec![target::check(&facts.pod, first)];
    verdicts.extend(mirror::check(&facts.pod));
    verdicts.extend(grace::check(&facts.pod, now));
    if facts.pod.never_ran() {
        verdicts.push(node::none());
    } else {
        verdicts.extend(on_node(&facts.node, Some(&facts.pod.conditions), now));
    }
    verdicts.extend(on_workload(facts, finalizers::of_pod(&facts.pod)));
    verdicts.push(rights::check("delete pods", &facts.may_delete));
    if facts.pod.job_waits {
        verdicts.push(rights::check("patch pods/status", &facts.may_patch_status));
    }
    lowered_if_fenced(verdicts, &facts.node, now)
}

/// The verdicts on a pod whose Node is to be deleted. The pod is deleted with its Node.
#[must_use]
pub fn of_pod_with_its_node(facts: &Facts, now: Now) -> Vec<Verdict> {
    if facts.pod.mirror {
        return vec![mirror::check_if_node_is_deleted()];
    }
    let finalizers = finalizers::check(&facts.pod.finalizers);
    lowered_if_fenced(on_workload(facts, finalizers), &facts.node, now)
}

/// The verdicts on a Node that is to be deleted. `first` is the uid in the first report, if there was one
/// already.
#[must_use]
pub fn of_node(
    facts: &NodeFacts,
    may_delete: &Known<bool>,
    first: Option<&str>,
    now: Now,
) -> Vec<Verdict> {
    let mut verdicts = vec![target::check_node(&facts.node, first)];
    verdicts.extend(on_node(facts, None, now));
    verdicts.push(lease::check_if_node_is_deleted(&facts.lock, now));
    if let Known::Yes(Some(node)) = &facts.node {
        verdicts.push(finalizers::check(&node.finalizers));
    }
    verdicts.push(rights::check("delete nodes", may_delete));
    lowered_if_fenced(verdicts, facts, now)
}

/// Whether anything can still run on the node, and who else works on it. `conditions` are those of one of the
/// node's pods.
fn on_node(facts: &NodeFacts, conditions: Option<&PodConditions>, now: Now) -> Vec<Verdict> {
    let mut verdicts = node::check(facts, conditions, now);
    verdicts.push(mass_loss::check(&facts.zone));
    verdicts.extend(lease::check(&facts.lock, &facts.remediation, now));
    verdicts
}

/// What the pod's owner, data and clients lose, no matter who deletes the pod.
fn on_workload(facts: &Facts, finalizers: Verdict) -> Vec<Verdict> {
    let mut verdicts = vec![owner::check(&facts.pod, &facts.owner)];
    verdicts.extend(quorum::check(&facts.pod, &facts.owner));
    verdicts.extend(volumes::check(&facts.volumes, &facts.pod.node));
    verdicts.extend(volumes::check_deleted(&facts.deleted_claims));
    verdicts.extend(volumes::check_ephemeral(&facts.ephemeral));
    verdicts.extend(devices::check(&facts.pod));
    verdicts.push(finalizers);
    verdicts.push(budgets::check(&facts.budgets));
    verdicts
}

/// If the node was fenced, nothing runs there any more, so risks become infos. If the node was only cut off,
/// its processes may run, so the risks about processes stay. Data that is deleted with the pod is lost in any
/// case. A fencing record lowers no verdict if the kubelet is alive.
fn lowered_if_fenced(mut verdicts: Vec<Verdict>, facts: &NodeFacts, now: Now) -> Vec<Verdict> {
    let Known::Yes(Some(node)) = &facts.node else {
        return verdicts;
    };
    if let Fenced::Recorded(record) = node.fenced(now) {
        let lowered = { verdicts.iter_mut() }.filter(|verdict| {
            verdict.id != volumes::DELETED || bugs::active(Bug::FencingKeepsData)
        });
        let isolated = record.how.is_isolated() && !bugs::active(Bug::IsolationEndsProcesses);
        let lowered = lowered.filter(|verdict| !isolated || !OF_PROCESSES.contains(&verdict.id));
        lowered.for_each(Verdict::lower);
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use super::testing::{NOW, controlled, pod, record, there};
    use super::*;
    use crate::facts::{DeletedClaim, Promise, Volume};
    use crate::fencing::record::{How, Record, Since};
    use crate::node_health::{Ready, Status};
    use crate::taint::OutOfService;

    /// The levels of `owner`, `volume-attached` and `volume-deleted` for a pod of an unreachable node that has the
    /// out-of-service taint and was fenced as in `how`.
    fn levels(how: Option<How>) -> [Level; 3] {
        let mut node = there();
        node.state.ready = Some(Ready {
            status: Status::Unknown,
            since: None,
        });
        node.state.out_of_service = OutOfService::Asserted;
        node.state.since = Some(Since::SameBoot);
        node.state.record = how.map(|how| Record { how, ..record() });
        let facts = Facts {
            pod: pod(),
            node: NodeFacts {
                node: Known::Yes(Some(node)),
                ..NodeFacts::default()
            },
            owner: controlled(Known::Yes(Promise::OneOfEachName), None),
            volumes: vec![Volume {
                name: "data".to_owned(),
                modes: Vec::new(),
                unguarded: Known::Yes(None),
                writes_after_detach: None,
                attached: Known::Yes(Some("va-1".to_owned())),
            }],
            deleted_claims: Known::Yes(vec![DeletedClaim {
                name: "data".to_owned(),
                with_volume: Known::Yes(true),
            }]),
            ephemeral: Vec::new(),
            budgets: Known::default(),
            may_delete: Known::default(),
            may_patch_status: Known::default(),
        };
        let verdicts = of_pod(&facts, None, Now::at(NOW));
        ["owner", "volume-attached", "volume-deleted"].map(|id| {
            let found = verdicts.iter().find(|verdict| verdict.id == id);
            found.expect("its verdict").level
        })
    }

    #[test]
    fn a_fencing_lowers_risks_but_an_isolation_not_those_of_processes() {
        let hook = |isolated| {
            Some(How::Hook {
                program: "hook".to_owned(),
                output: String::new(),
                isolated,
            })
        };
        let risk = Level::Risk;
        assert_eq!(levels(None), [risk; 3]);
        assert_eq!(levels(hook(false)), [Level::Info, Level::Info, risk]);
        assert_eq!(levels(hook(true)), [risk, Level::Info, risk]);
    }
}
