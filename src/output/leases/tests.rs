//! The table as it is printed, and the data.

use insta::assert_snapshot;
use maintenance_lease::protocol::Span;
use maintenance_lease::{LeaseScope, Maintenance};
use sandbox::{Resource, Sandbox};
use serde_json::{Value, json};

use crate::output::data::Time;
use crate::output::leases::*;
use crate::output::schema::check::check_value;

/// 2026-03-01T12:00:00Z
fn noon() -> Now {
    Now::at(Instant::from_micros(1_772_366_400_000_000))
}

/// A holder since 11:30 who renewed `ago` before noon, for a term of `seconds`.
fn held(holder: &str, ago: i64, seconds: u32) -> Value {
    let renewed = noon().latest - Span::micros(ago * 1_000_000);
    let acquired = noon().latest - Span::seconds(1800);
    let wire = |instant: Instant| serde_json::to_value(Time::of(instant)).expect("a time");
    json!({
        "holderIdentity": holder,
        "acquireTime": wire(acquired),
        "renewTime": wire(renewed),
        "leaseDurationSeconds": seconds,
        "leaseTransitions": 3,
    })
}

fn lease(namespace: &str, name: &str, labels: &Value, spec: &Value) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "spec": spec,
    })
}

/// One of each kind, as in a cluster with coordinated leader election.
async fn all_kinds() -> Vec<LeaseEntry> {
    let candidates = Resource::custom(
        "coordination.k8s.io",
        "v1beta1",
        "LeaseCandidate",
        "leasecandidates",
        true,
    );
    let sandbox = Sandbox::builder()
        .resource(candidates)
        .clock(|| noon().latest.to_chrono().expect("a time"))
        .build();
    let none = json!({});
    let identity = json!({
        "apiserver.kubernetes.io/identity": "kube-apiserver",
        "kubernetes.io/hostname": "master-1",
    });
    let server = "apiserver-2kmpl5pqrg7hjtu7f7uy2v7aqu";
    let leader = "master-1_0f2b1d3c-5a60-4d2c-9d4e-6f6b7c8d9e0f";
    let mut coordinated = held(leader, 1, 15);
    coordinated["strategy"] = json!("OldestEmulationVersion");
    for object in [
        lease(
            "kube-node-lease",
            "worker-1",
            &none,
            &held("worker-1", 4, 40),
        ),
        lease(
            "kube-node-lease",
            "worker-2",
            &none,
            &held("worker-2", 580, 40),
        ),
        lease(
            "kube-node-maintenance",
            "worker-1",
            &none,
            &held("kubeadm:carol@desk", 9, 1),
        ),
        lease(
            "kube-node-maintenance",
            "worker-2",
            &none,
            &held("alice@bastion", 60, 1800),
        ),
        lease(
            "kube-system",
            server,
            &identity,
            &held(&format!("{server}_77"), 5, 3600),
        ),
        lease("kube-system", "kube-scheduler", &none, &coordinated),
        lease(
            "kube-system",
            "kubeadm-elects",
            &none,
            &held("kubeadm-0", 75, 15),
        ),
        lease(
            "medik8s-leases",
            "node-worker-2",
            &none,
            &held("self-node-remediation", 6, 60),
        ),
        lease("apps", "never", &none, &none),
        json!({
            "apiVersion": "coordination.k8s.io/v1beta1",
            "kind": "LeaseCandidate",
            "metadata": {"namespace": "kube-system", "name": leader},
            "spec": {
                "leaseName": "kube-scheduler",
                "binaryVersion": "1.36.3",
                "emulationVersion": "1.36.0",
                "strategy": "OldestEmulationVersion",
                "renewTime": "2026-03-01T11:59:00.000000Z",
            },
        }),
    ] {
        sandbox.put(object);
    }
    let locks = Maintenance::new(sandbox.client(), "alice@bastion").expect("an identity");
    let leases = locks
        .any_leases(LeaseScope::Everywhere)
        .await
        .expect("leases");
    let candidates = locks.candidates(None).await.expect("candidates");
    let leases = leases.into_iter().map(Box::new).map(LeaseEntry::Lease);
    leases
        .chain(candidates.into_iter().map(LeaseEntry::Candidate))
        .collect()
}

fn layout() -> Layout {
    Layout {
        namespaces: true,
        wide: false,
        headers: true,
        fit: None,
    }
}

#[tokio::test]
async fn every_kind_is_named() {
    assert_snapshot!(table(&all_kinds().await, layout(), noon()), @"
    NAMESPACE               NAME                                            HOLDER                                          AGE   LEFT      PURPOSE
    apps                    never                                           -                                               0s    -         never used
    kube-node-lease         worker-1                                        worker-1                                        30m   36s       node heartbeat
    kube-node-lease         worker-2                                        worker-2                                        30m   9m ago    node heartbeat
    kube-node-maintenance   worker-1                                        carol@desk                                      30m   never     node maintenance
    kube-node-maintenance   worker-2                                        alice@bastion                                   30m   29m       node maintenance
    kube-system             apiserver-2kmpl5pqrg7hjtu7f7uy2v7aqu            apiserver-2kmpl5pqrg7hjtu7f7uy2v7aqu_77         30m   1h        API server on master-1
    kube-system             kube-scheduler                                  master-1_0f2b1d3c-5a60-4d2c-9d4e-6f6b7c8d9e0f   30m   14s       coordinated leader election (OldestEmulationVersion)
    kube-system             kubeadm-elects                                  kubeadm-0                                       30m   60s ago   leader election
    medik8s-leases          node-worker-2                                   self-node-remediation                           30m   54s       node remediation (medik8s)
    kube-system             master-1_0f2b1d3c-5a60-4d2c-9d4e-6f6b7c8d9e0f   -                                               0s    -         candidate for kube-scheduler, 1.36.3
    ");
}

#[tokio::test]
async fn a_terminal_shows_less_of_each_lease_until_it_fits() {
    let all = all_kinds().await;
    // Without the candidate, whose name is longer than usual.
    let usual = &all[..all.len() - 1];
    let shown = |fit| table(usual, Layout { fit, ..layout() }, noon());
    assert_snapshot!(shown(Some(80)), @"
    NAMESPACE               NAME               HOLDER                  LEFT
    apps                    never              -                       -
    kube-node-lease         worker-1           worker-1                36s
    kube-node-lease         worker-2           worker-2                9m ago
    kube-node-maintenance   worker-1           carol@desk              never
    kube-node-maintenance   worker-2           alice@bastion           29m
    kube-system             apiserver-2kmpl…   master-1                1h
    kube-system             kube-scheduler     master-1                14s
    kube-system             kubeadm-elects     kubeadm-0               60s ago
    medik8s-leases          node-worker-2      self-node-remediation   54s
    ");
    assert_snapshot!(shown(Some(100)), @"
    NAMESPACE               NAME               HOLDER                  LEFT      PURPOSE
    apps                    never              -                       -         never used
    kube-node-lease         worker-1           worker-1                36s       node heartbeat
    kube-node-lease         worker-2           worker-2                9m ago    node heartbeat
    kube-node-maintenance   worker-1           carol@desk              never     node maintenance
    kube-node-maintenance   worker-2           alice@bastion           29m       node maintenance
    kube-system             apiserver-2kmpl…   master-1                1h        API server on master-1
    kube-system             kube-scheduler     master-1                14s       coordinated leader ele…
    kube-system             kubeadm-elects     kubeadm-0               60s ago   leader election
    medik8s-leases          node-worker-2      self-node-remediation   54s       node remediation (medi…
    ");
    assert_eq!(shown(Some(250)), shown(None));
    // The terminal wraps it anyway.
    let wrapped = table(
        &all,
        Layout {
            fit: Some(80),
            ..layout()
        },
        noon(),
    );
    assert!(wrapped.starts_with("NAMESPACE "), "{wrapped}");
    assert!(!wrapped.contains("PURPOSE"), "{wrapped}");
}

#[tokio::test]
async fn a_wide_table_has_the_times() {
    let layout = Layout {
        namespaces: false,
        wide: true,
        headers: false,
        fit: Some(80),
    };
    let maintained: Vec<LeaseEntry> = all_kinds().await;
    let maintained = &maintained[3..5];
    assert_snapshot!(table(maintained, layout, noon()), @"
    worker-1   carol@desk      30m   never   node maintenance   OnHold   2026-03-01T11:30:00Z   2026-03-01T11:59:51Z   1s      3
    worker-2   alice@bastion   30m   29m     node maintenance   Locked   2026-03-01T11:30:00Z   2026-03-01T11:59:00Z   1800s   3
    ");
}

#[tokio::test]
async fn data_is_as_documented() {
    let entries = all_kinds().await;
    let list = serde_json::to_value(list(&entries, noon())).expect("JSON");
    check_value(&list);
    assert_eq!(list["kind"], "LeaseSummaryList");
    let items = list["items"].as_array().expect("items");
    let purposes: Vec<&Value> = items.iter().map(|item| &item["purpose"]).collect();
    assert_eq!(
        purposes,
        [
            "Unknown",
            "Heartbeat",
            "Heartbeat",
            "Maintenance",
            "Maintenance",
            "ApiServerIdentity",
            "LeaderElection",
            "LeaderElection",
            "Remediation",
            "ElectionCandidate",
        ]
    );
    let documented = include_str!("../../../docs/json.md");
    for purpose in purposes {
        let purpose = purpose.as_str().expect("a word");
        assert!(
            documented.contains(&format!("- `{purpose}`: ")),
            "{purpose}"
        );
    }
    assert_eq!(items[2]["state"], "Expired");
    assert_eq!(items[2]["secondsExpired"], 540);
    assert_eq!(items[4]["secondsLeft"], 1740);
    assert_eq!(items[2]["node"], "worker-2");
    assert_eq!(items[3]["state"], "OnHold");
    assert_eq!(items[6]["strategy"], "OldestEmulationVersion");
    assert_eq!(items[9]["version"], "1.36.3");
    assert_eq!(items[9].get("state"), None, "a candidate has none");
}
