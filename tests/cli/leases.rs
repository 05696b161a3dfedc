//! The command `leases`.

use control_plane::Rule;
use insta::assert_snapshot;
use maintenance_lease::{Acquire, LeaderElection, Release, Repository};
use serde_json::{Value, json};

use crate::support::{Cluster, Run, ago, in_memory, on_both, on_one, on_real, requests};

const ALL: &str = "/apis/coordination.k8s.io/v1/namespaces";

fn held(holder: &str, ago_seconds: i64, seconds: u32) -> Value {
    json!({
        "holderIdentity": holder,
        "acquireTime": ago(1805),
        "renewTime": ago(ago_seconds),
        "leaseDurationSeconds": seconds,
        "leaseTransitions": 1,
    })
}

/// Creates a Lease in any namespace.
fn lease(cluster: &Cluster, namespace: &str, name: &str, labels: &Value, spec: &Value) {
    cluster.create(
        &format!("{ALL}/{namespace}/leases"),
        &json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
        }),
    );
}

/// Creates a namespace for this test, and returns its name.
fn namespace(cluster: &Cluster, short: &str) -> String {
    let name = cluster.name(short);
    cluster.create(
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
    );
    name
}

/// Returns the rows with the prefix of this test, without the prefix. Other tests on the same
/// server have other prefixes.
fn rows(run: &Run, cluster: &Cluster) -> String {
    let prefix = cluster.name("");
    let rows = run.stdout.lines().filter(|line| line.contains(&prefix));
    let words = rows.map(|row| {
        let row = row.replace(&prefix, "");
        let cells = row
            .split("   ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty());
        cells.collect::<Vec<_>>().join(" | ")
    });
    words.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_kind_has_words() {
    on_both("leases-kinds", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &held("kubeadm:carol@desk", 1805, 1));
        let none = json!({});
        lease(
            cluster,
            "kube-node-lease",
            &node,
            &none,
            &held(&node, 900, 40),
        );
        let elected = cluster.name("scheduler");
        lease(
            cluster,
            "kube-system",
            &elected,
            &none,
            &held("kubeadm-0", 620, 15),
        );
        let server = cluster.name("apiserver");
        let identity = json!({
            "apiserver.kubernetes.io/identity": "kube-apiserver",
            "kubernetes.io/hostname": "master-1",
        });
        lease(
            cluster,
            "kube-system",
            &server,
            &identity,
            &held("it", 5, 3600),
        );
        let all = cluster.maint(["leases", "-A"]).succeeds();
        assert_snapshot!(rows(&all, cluster), @"
        kube-node-maintenance | worker-1 | carol@desk | 30m | never | node maintenance
        kube-system | apiserver | it | 30m | 1h | API server on master-1
        kube-system | scheduler | kubeadm-0 | 30m | 10m ago | leader election
        ");
        assert!(all.stdout.starts_with("NAMESPACE "), "{all}");
        let unreachable = cluster.maint(["leases", "-A", "--heartbeats"]).succeeds();
        assert_snapshot!(rows(&unreachable, cluster), @"
        kube-node-lease | worker-1 | worker-1 | 30m | 14m ago | node heartbeat
        kube-node-maintenance | worker-1 | carol@desk | 30m | never | node maintenance
        kube-system | apiserver | it | 30m | 1h | API server on master-1
        kube-system | scheduler | kubeadm-0 | 30m | 10m ago | leader election
        ");
        let template = ["leases", "-A", "-o", "jsonpath={.nosuch}"];
        let nothing = cluster.maint(template).succeeds();
        assert_eq!(nothing.stdout, "", "{nothing}");
        let names = cluster.maint(["leases", "-A", "-o", "name"]).succeeds();
        assert_snapshot!(rows(&names, cluster), @"
        lease.coordination.k8s.io/worker-1
        lease.coordination.k8s.io/apiserver
        lease.coordination.k8s.io/scheduler
        ");
    });
}

#[test]
fn a_namespace_is_looked_in_as_kubectl_does() {
    on_one("leases-namespace", |cluster| {
        let namespace = namespace(cluster, "apps");
        let leases = ["leases", "-n", &namespace];
        assert_snapshot!(cluster.maint(leases).run(), @"
        $ kubectl maint leases -n apps
        -- stderr
        No resources found in apps namespace: add -A for all namespaces
        -- exit code 0
        ");
        lease(
            cluster,
            &namespace,
            "db",
            &json!({}),
            &held("db-0", 5, 1800),
        );
        assert_snapshot!(cluster.maint(leases).run(), @"
        $ kubectl maint leases -n apps
        NAME   HOLDER   AGE   LEFT   PURPOSE
        db     db-0     30m   30m    leader election
        -- exit code 0
        ");
        let json = cluster.maint(leases).args(["-o", "json"]).run();
        assert_snapshot!(json, @r#"
        $ kubectl maint leases -n apps -o json
        {
          "apiVersion": "kubectl-maint.dev/v2",
          "kind": "LeaseSummaryList",
          "items": [
            {
              "apiVersion": "kubectl-maint.dev/v2",
              "kind": "LeaseSummary",
              "namespace": "apps",
              "name": "db",
              "purpose": "LeaderElection",
              "about": "leader election",
              "state": "Locked",
              "holder": "db-0",
              "createdAt": "[time]",
              "acquiredAt": "[time]",
              "renewedAt": "[time]",
              "until": "[time]",
              "secondsLeft": [number],
              "durationSeconds": 1800,
              "transitions": 1
            }
          ]
        }
        -- exit code 0
        "#);
        let unreachable = cluster.maint(["leases", "-n", "kube-node-lease"]).run();
        assert_snapshot!(unreachable, @"
        $ kubectl maint leases -n kube-node-lease
        -- stderr
        No resources found: add --heartbeats to show heartbeats
        -- exit code 0
        ");
    });
}

#[test]
fn elections_of_the_library_are_distinguished_from_its_locks() {
    on_both("leases-elected", |cluster| {
        let namespace = namespace(cluster, "apps");
        let what = || {
            let run = cluster.maint(["leases", "-n", &namespace, "-o", "json"]);
            let list: Value = serde_json::from_str(&run.succeeds().stdout).expect("JSON");
            let items = list["items"].as_array().expect("a list").clone();
            let of = |item: &Value| format!("{} {}", item["purpose"], item["state"]);
            items.iter().map(of).collect::<Vec<_>>().join(", ")
        };
        let locks = cluster.locks(Repository::new(namespace.as_str()));
        let election = LeaderElection::new(locks.clone(), "scheduler").expect("an election");
        cluster.wait_for(async {
            let lock = locks.try_acquire("compaction", &Acquire::new()).await;
            lock.expect("it is free");
            election.campaign(|_| ()).await.expect("it leads");
        });
        assert_snapshot!(what(), @r#""Lock" "Locked", "LeaderElection" "Locked""#);
        cluster.wait_for(async {
            let released = locks.release("scheduler", &Release::new()).await;
            released.expect("it is given back");
        });
        assert_snapshot!(what(), @r#""Lock" "Locked", "LeaderElection" "Free""#);
        cluster.wait_for(async {
            let lock = locks.try_acquire("scheduler", &Acquire::new()).await;
            lock.expect("it is free");
        });
        assert_snapshot!(what(), @r#""Lock" "Locked", "Lock" "Locked""#);
    });
}

#[test]
fn leases_come_a_page_at_a_time_and_heartbeats_only_when_asked_for() {
    in_memory("leases-pages", |cluster| {
        let none = json!({});
        for number in 0..501 {
            let name = format!("lock-{number:03}");
            lease(cluster, "default", &name, &none, &none);
        }
        let node = cluster.node("worker-1");
        lease(
            cluster,
            "kube-node-lease",
            &node,
            &none,
            &held(&node, 5, 40),
        );
        let run = cluster.maint(["leases", "-A", "-v6"]).succeeds();
        assert_eq!(requests(&run), ["GET"; 3], "two pages, and candidates");
        assert_eq!(run.stdout.lines().count(), 502, "headers, no heartbeat");
        let run = cluster
            .maint(["leases", "-A", "--heartbeats", "--no-headers"])
            .succeeds();
        assert_eq!(run.stdout.lines().count(), 502);
    });
}

#[test]
fn leases_can_be_listed_without_the_right_on_candidates() {
    on_real("leases-rights", |cluster| {
        let namespace = namespace(cluster, "apps");
        lease(
            cluster,
            &namespace,
            "db",
            &json!({}),
            &held("db-0", 5, 1800),
        );
        let plane = cluster.plane();
        let user = cluster.name("user");
        let kubeconfig = plane.user(&user, &[]).expect("a user");
        let everywhere = ["leases", "-A"];
        let refused = cluster.maint(everywhere).kubeconfig(&kubeconfig).run();
        assert_eq!(refused.code, 1);
        let rights = [Rule::new("coordination.k8s.io", &["leases"], &["list"])];
        plane.grant(&user, &rights).expect("rights");
        let run = cluster.maint(["leases", "-n", &namespace, "--no-headers"]);
        assert_snapshot!(run.kubeconfig(&kubeconfig).run(), @"
        $ kubectl maint leases -n apps --no-headers
        db   db-0   30m   30m   leader election
        -- exit code 0
        ");
    });
}
