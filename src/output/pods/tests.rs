//! The table as it is printed, and the data.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use maintenance_lease::protocol::{Instant, Span};
use pod_safety::Why;
use pod_safety::node_health::Health;
use pod_safety::stuck::{Attachment, Orphan, Stuck, StuckPod, StuckVolume};
use pod_safety::why::{Diagnosis, Finalizer, Reason, State, Unread};

use crate::output::data::Data as _;
use crate::output::pods::*;
use crate::output::schema::check::check_value;
use crate::output::why::next;
use crate::words::hint_command::Program;
use crate::words::stuck::summary;
use crate::words::why::{unread, volume_steps};

const NOW: Instant = Instant::from_micros(1_772_366_400_000_000);

fn ago(seconds: u32) -> Instant {
    NOW - Span::seconds(seconds)
}

fn pod(owner: &str, name: &str, health: &Health, state: State, reasons: &[Reason]) -> StuckPod {
    let is_placed = *health != Health::Ready;
    let of_node = is_placed.then(|| Reason::Node {
        name: "worker-1".to_owned(),
        health: health.clone(),
    });
    StuckPod {
        namespace: "apps".to_owned(),
        name: name.to_owned(),
        owner: Some(owner.to_owned()),
        health: Some(health.clone()),
        found: Diagnosis {
            forced: false,
            state,
            node: is_placed.then(|| "worker-1".to_owned()),
            reasons: of_node.into_iter().chain(reasons.iter().cloned()).collect(),
            waiting_owner: None,
            unread: Vec::new(),
        },
    }
}

/// One of each.
fn all() -> Stuck {
    let down = Health::Unreachable {
        since: Some(ago(540)),
    };
    let reporting = Health::NotReady { reporting: true };
    let volume = |name: &str, health: &Health, orphan| StuckVolume {
        attachment: Attachment {
            name: name.to_owned(),
            node: "worker-1".to_owned(),
            volume: Some("pvc-7d2e".to_owned()),
            driver: "csi.example.com".to_owned(),
            deleting: orphan == Orphan::Detaching,
            detach_error: { (orphan == Orphan::Detaching).then(|| "disk in use".to_owned()) },
        },
        health: health.clone(),
        orphan,
    };
    let evicted = |at| [Reason::Evicted { at }];
    let late = |seconds| State::Terminating {
        since: ago(seconds),
    };
    let mut member = pod("StatefulSet/db", "db-0", &down, late(540), &[]);
    member.found.waiting_owner = Some("StatefulSet/db".to_owned());
    let set = "ReplicaSet/web-7d4c";
    let unschedulable = Reason::Unschedulable {
        message: "0/3 nodes are available: 1 node(s) had untolerated taint, 2 Insufficient cpu."
            .to_owned(),
    };
    let held = Reason::Finalizer(Finalizer {
        name: "example.com/\u{1b}[31mbackup".to_owned(),
        owner: None,
        manager: None,
    });
    let node = || "worker-1".to_owned();
    let hung = Reason::Containers {
        node: node(),
        names: vec!["main".to_owned()],
    };
    let grace = Reason::Grace {
        until: NOW + Span::seconds(20),
        pre_stop: Vec::new(),
    };
    let ending = State::Ending {
        until: NOW + Span::seconds(20),
    };
    let finalizing = State::Finalizing { since: ago(75) };
    let of_live_kubelet = |name, state, reason: Reason| {
        let mut pod = pod(set, name, &Health::Ready, state, &[reason]);
        pod.found.node = Some("worker-2".to_owned());
        pod
    };
    let mut unfenced = pod(set, "web-7d4c-z", &down, late(75), &[]);
    unfenced.health = None;
    Stuck {
        nodes: BTreeMap::from([("worker-1".to_owned(), down.clone())]),
        pods: vec![
            pod(
                set,
                "web-7d4c-x",
                &down,
                State::Running,
                &evicted(NOW + Span::seconds(192)),
            ),
            pod(
                set,
                "web-7d4c-y",
                &reporting,
                State::Running,
                &evicted(ago(130)),
            ),
            pod(
                "DaemonSet/logs",
                "logs-z",
                &down,
                State::Running,
                &[Reason::NeverEvicted],
            ),
            pod(
                "Job/young",
                "young-0",
                &down,
                State::Pending,
                &[Reason::Unevicted],
            ),
            pod(
                "StatefulSet/gone",
                "gone-0",
                &Health::Gone,
                State::Running,
                &[],
            ),
            member,
            unfenced,
            pod("StatefulSet/slow", "slow-0", &down, ending, &[grace]),
            of_live_kubelet("kept-0", finalizing, held),
            of_live_kubelet("hung-0", late(20), hung),
        ],
        waiting: vec![
            pod(
                set,
                "web-7d4c-w",
                &Health::Ready,
                State::Pending,
                &[unschedulable],
            ),
            of_live_kubelet(
                "web-7d4c-v",
                State::Pending,
                Reason::MultiAttach {
                    claim: "data".to_owned(),
                    volume: "pvc-7d2e".to_owned(),
                    node: node(),
                    health: Some(down.clone()),
                    pods: Vec::new(),
                    detaching: false,
                },
            ),
        ],
        volumes: vec![
            volume("csi-1", &Health::Gone, Orphan::NodeGone),
            volume("csi-2", &Health::Gone, Orphan::NodeGone),
            volume("csi-3", &down, Orphan::Detaching),
            volume("csi-4", &down, Orphan::Unused),
        ],
        unread: Vec::new(),
    }
}

fn shown(wide: bool, fit: Option<usize>) -> String {
    let layout = Layout {
        wide,
        headers: true,
        fit,
    };
    table(&all(), layout, Now::at(NOW)).expect("rows")
}

#[test]
fn every_reason_is_in_a_few_words() {
    assert_snapshot!(shown(false, Some(80)), @r"
    NAMESPACE   NAME             NODE       STATE
    apps        pod/web-7d4c-x   worker-1   NodeUnreachable, eviction in 3m12s
    apps        pod/web-7d4c-y   worker-1   NodeNotReady, eviction due 2m10s ago
    apps        pod/logs-z       worker-1   NodeUnreachable, never evicted
    apps        pod/young-0      worker-1   Pending, NodeUnreachable, not being
                                            evicted yet
    apps        pod/gone-0       worker-1   NodeGone, deleted soon
    apps        pod/db-0         worker-1   Terminating, 9m overdue,
                                            NodeUnreachable, cannot be replaced yet
    apps        pod/web-7d4c-z   worker-1   Terminating, 75s overdue,
                                            NodeUnreachable
    apps        pod/slow-0       worker-1   Terminating, NodeUnreachable, 20s of
                                            grace left
    apps        pod/kept-0       worker-2   held by finalizer
                                            example.com/\u{1b}[31mbackup
    apps        pod/hung-0       worker-2   Terminating, 20s overdue, container main
                                            cannot be stopped
    apps        pod/web-7d4c-w   -          Pending, unschedulable: 0/3 nodes are
                                            available: 1 node(s) had untolerated
                                            taint, 2 Insufficient cpu
    apps        pod/web-7d4c-v   worker-2   Pending, volume pvc-7d2e is attached to
                                            worker-1
    -           pv/pvc-7d2e      worker-1   Attached to a node that is gone
    -           pv/pvc-7d2e      worker-1   Attached to a node that is gone
    -           pv/pvc-7d2e      worker-1   Waiting to be detached: disk in use
    -           pv/pvc-7d2e      worker-1   Still attached, but no pod there uses it
    ");
    let wide = shown(true, None);
    assert_snapshot!(wide.lines().take(3).collect::<Vec<_>>().join("\n"), @"
    NAMESPACE   NAME             NODE       OWNER                 STATE
    apps        pod/web-7d4c-x   worker-1   ReplicaSet/web-7d4c   NodeUnreachable, eviction in 3m12s
    apps        pod/web-7d4c-y   worker-1   ReplicaSet/web-7d4c   NodeNotReady, eviction due 2m10s ago
    ");
    assert_snapshot!(summary(&all(), None), @"1 unhealthy node, 9 stuck pods, 1 pending pod, 2 pending replacements, 4 stuck volumes");
}

#[test]
fn long_states_have_lines_of_their_own() {
    let narrow = shown(false, Some(50));
    assert!(narrow.lines().all(|line| line.chars().count() <= 50));
    assert_snapshot!(narrow.lines().take(5).collect::<Vec<_>>().join("\n"), @"
    NAMESPACE   NAME             NODE
        STATE
    apps        pod/web-7d4c-x   worker-1
        NodeUnreachable, eviction in 3m12s
    apps        pod/web-7d4c-y   worker-1
    ");
}

#[test]
fn orphaned_volumes_have_a_remedy_each() {
    let steps = volume_steps(&all().volumes, &Program::default());
    assert_snapshot!(next(&steps).expect("commands"), @"
    Next:
      # by default, Kubernetes detaches volumes of a dead node after 6m
      kubectl wait --for=delete volumeattachment csi-1 csi-2 --timeout=10m
      # by default, Kubernetes detaches volumes of a dead node after 6m
      kubectl wait --for=delete volumeattachment csi-4 --timeout=10m
      # read why the driver cannot detach it
      kubectl describe volumeattachment csi-1 csi-2
      # read why the driver cannot detach it
      kubectl describe volumeattachment csi-3
      # read why the driver cannot detach it
      kubectl describe volumeattachment csi-4
      # power it off, and its volumes are detached at once
      kubectl maint fence worker-1 -- HOOK
      # only if the machine is off: tells the driver to detach it
      kubectl delete volumeattachment csi-1 csi-2
    ");
}

#[test]
fn unknown_facts_are_shown_as_unknown() {
    let stuck = Stuck {
        pods: Vec::new(),
        waiting: Vec::new(),
        volumes: Vec::new(),
        unread: vec![Unread {
            what: "volume attachments",
            why: Why::Forbidden("list volumeattachments".to_owned()),
        }],
        ..all()
    };
    assert_eq!(
        unread(&stuck.unread).as_deref(),
        Some("could not read volume attachments (no permission to list volumeattachments)")
    );
    let layout = Layout {
        wide: false,
        headers: true,
        fit: None,
    };
    let now = Now::at(NOW);
    assert_eq!(table(&stuck, layout, now), None);
    assert!(list(&stuck, &Program::default(), now).names().is_empty());
    assert_eq!(summary(&stuck, None), "no pods are stuck on node/worker-1");
}

#[test]
fn data_is_as_documented() {
    let all = all();
    let list = list(&all, &Program::default(), Now::at(NOW));
    // A replacement is not stuck, and must not be deleted like what is.
    assert_eq!(list.names().len(), all.pods.len() + all.volumes.len());
    let list = serde_json::to_value(list).expect("JSON");
    check_value(&list);
    let documented = include_str!("../../../docs/json.md");
    let items = list["items"].as_array().expect("items");
    for item in items {
        for field in ["kind", "state"] {
            if let Some(word) = item[field].as_str() {
                assert!(documented.contains(&format!("`{word}`")), "{word}");
            }
        }
    }
    assert_eq!(items[0]["state"], "Evicted");
    assert_eq!(items[0]["evictedAt"], "2026-03-01T12:03:12Z");
    assert_eq!(items[0]["reasons"][0]["code"], "NodeUnreachable");
    assert_eq!(items[4]["state"], "Collected");
    assert_eq!(items[5]["nameHeld"], true);
    assert_eq!(items[8]["finalizers"][0], "example.com/\u{1b}[31mbackup");
    assert_eq!(items[10]["kind"], "PendingReplacement");
    assert_eq!(items[10]["reasons"][0]["code"], "Unschedulable");
    assert_eq!(items[12]["state"], "NodeGone");
    let next = items[12]["next"][0]["command"].as_str().expect("a command");
    assert!(
        next.contains("wait --for=delete volumeattachment csi-1"),
        "{next}"
    );
    assert_eq!(items[7]["graceUntil"], "2026-03-01T12:00:20Z");
}
