//! The table as it is printed, and the data.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use maintenance_lease::protocol::{Instant, Span};
use pod_safety::Why;
use pod_safety::facts::PodSight;
use pod_safety::stranded::{Attachment, BlockedNamespace, Pod};

use crate::output::data::Data as _;
use crate::output::pods::*;
use crate::output::schema::check::check_value;

const NOW: Instant = Instant::from_micros(1_772_366_400_000_000);

fn ago(seconds: u32) -> Instant {
    NOW - Span::seconds(seconds)
}

fn pod(name: &str, owner: &str, health: &Health, fate: Fate) -> StrandedPod {
    StrandedPod {
        pod: Pod {
            sight: PodSight {
                namespace: "apps".to_owned(),
                name: name.to_owned(),
                node: "worker-1".to_owned(),
                ..PodSight::default()
            },
            owner: Some(owner.to_owned()),
            holds_its_name: false,
            tolerations: Vec::new(),
            claims: Vec::new(),
            finished: false,
        },
        health: health.clone(),
        fate,
    }
}

/// One of each.
fn all() -> Stranded {
    let down = Health::Unreachable {
        since: Some(ago(540)),
    };
    let reporting = Health::NotReady { reporting: true };
    let volume = |name: &str, health: &Health, orphan| StrandedVolume {
        attachment: Attachment {
            name: name.to_owned(),
            node: "worker-1".to_owned(),
            volume: Some("pvc-7d2e".to_owned()),
            driver: "csi.example.com".to_owned(),
            deleting: false,
        },
        health: health.clone(),
        orphan,
    };
    let evicted = |at| Fate::Evicted { at };
    let finalizers = vec!["example.com/\u{1b}[31mbackup".to_owned()];
    Stranded {
        nodes: BTreeMap::from([("worker-1".to_owned(), down.clone())]),
        pods: vec![
            pod(
                "web-7d4c-x",
                "ReplicaSet/web-7d4c",
                &down,
                evicted(NOW + Span::seconds(192)),
            ),
            pod(
                "web-7d4c-y",
                "ReplicaSet/web-7d4c",
                &reporting,
                evicted(ago(130)),
            ),
            pod("logs-z", "DaemonSet/logs", &down, Fate::NeverEvicted),
            pod("young-0", "StatefulSet/young", &down, Fate::Unevicted),
            pod("gone-0", "StatefulSet/gone", &Health::Gone, Fate::Collected),
            pod(
                "db-0",
                "StatefulSet/db",
                &down,
                Fate::Terminating {
                    since: ago(540),
                    name_held: true,
                },
            ),
            pod(
                "web-7d4c-z",
                "ReplicaSet/web-7d4c",
                &down,
                Fate::Terminating {
                    since: ago(75),
                    name_held: false,
                },
            ),
            pod(
                "slow-0",
                "StatefulSet/slow",
                &down,
                Fate::Ending {
                    until: NOW + Span::seconds(20),
                },
            ),
            pod(
                "kept-0",
                "StatefulSet/kept",
                &down,
                Fate::HeldByFinalizer { finalizers },
            ),
        ],
        volumes: Known::Yes(vec![
            volume("csi-1", &Health::Gone, Orphan::NodeGone),
            volume("csi-2", &down, Orphan::Detaching),
            volume("csi-3", &down, Orphan::Unused),
        ]),
        namespaces: Known::Yes(vec![BlockedNamespace {
            name: "apps".to_owned(),
            since: ago(540),
            pods: 9,
        }]),
    }
}

#[test]
fn every_fate_is_in_words() {
    let layout = Layout {
        wide: false,
        headers: true,
        fit: Some(80),
    };
    assert_snapshot!(table(&all(), layout, Now::at(NOW)).expect("rows"), @r"
    NAMESPACE   NAME                     NODE       STATE
    apps        pod/web-7d4c-x           worker-1   NodeUnreachable, eviction in 3m12s
    apps        pod/web-7d4c-y           worker-1   NodeNotReady, eviction due 2m10s ago
    apps        pod/logs-z               worker-1   NodeUnreachable, never evicted
    apps        pod/young-0              worker-1   NodeUnreachable, not being evicted yet
    apps        pod/gone-0               worker-1   NodeGone, deleted by PodGC soon
    apps        pod/db-0                 worker-1   Terminating +9m, name held
    apps        pod/web-7d4c-z           worker-1   Terminating +75s
    apps        pod/slow-0               worker-1   Terminating, 20s of grace left
    apps        pod/kept-0               worker-1   Held by finalizer example.com/\u{1b}[31mbackup
    -           volumeattachment/csi-1   worker-1   Orphan, its node is gone
    -           volumeattachment/csi-2   worker-1   Orphan, waits to be detached
    -           volumeattachment/csi-3   worker-1   Orphan, no pod there uses it
    -           namespace/apps           -          Terminating 9m, blocked by 9 pods
    ");
    let layout = Layout {
        wide: true,
        ..layout
    };
    let wide = table(&all(), layout, Now::at(NOW)).expect("rows");
    assert_snapshot!(wide.lines().take(3).collect::<Vec<_>>().join("\n"), @"
    NAMESPACE   NAME                     NODE       STATE                                            OWNER
    apps        pod/web-7d4c-x           worker-1   NodeUnreachable, eviction in 3m12s               ReplicaSet/web-7d4c
    apps        pod/web-7d4c-y           worker-1   NodeNotReady, eviction due 2m10s ago             ReplicaSet/web-7d4c
    ");
    assert_snapshot!(summary(&all()), @"1 unhealthy node: 9 pods, 3 orphaned volumes, 1 blocked namespace");
}

#[test]
fn what_is_not_known_is_said() {
    let stranded = Stranded {
        pods: Vec::new(),
        volumes: Known::Unknown(Why::Forbidden("list volumeattachments".to_owned())),
        namespaces: Known::Yes(Vec::new()),
        ..all()
    };
    assert_eq!(
        unknown(&stranded),
        ["orphaned volumes unknown: no permission to list volumeattachments"]
    );
    let layout = Layout {
        wide: false,
        headers: true,
        fit: None,
    };
    assert_eq!(table(&stranded, layout, Now::at(NOW)), None);
    assert!(list(&stranded).names().is_empty());
}

#[test]
fn data_is_as_documented() {
    let all = all();
    let list = serde_json::to_value(list(&all)).expect("JSON");
    check_value(&list);
    let documented = include_str!("../../../docs/json.md");
    let items = list["items"].as_array().expect("items");
    for item in items {
        for field in ["kind", "fate", "orphan"] {
            if let Some(word) = item[field].as_str() {
                assert!(documented.contains(&format!("`{word}`")), "{word}");
            }
        }
    }
    assert_eq!(items[0]["evictedAt"], "2026-03-01T12:03:12Z");
    assert_eq!(items[5]["nameHeld"], true);
    assert_eq!(items[9]["orphan"], "NodeGone");
    assert_eq!(items[12]["pods"], 9);
}
