//! Deletion of the Node object of an unreachable node, together with its pods.

use http::Method;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::fixture::{Fixture, Levels, fixture, owned_by};
use crate::support::{Maint, Treatment, ago, holder_of};

fn force_delete(fixture: &Fixture, words: &[&str]) -> Maint {
    let node = format!("node/{}", fixture.node);
    fixture.cluster.maint(["force-delete", &node]).args(words)
}

fn is_there(fixture: &Fixture) -> bool {
    let path = format!("/api/v1/nodes/{}", fixture.node);
    fixture.cluster.try_send("GET", &path, None).is_ok()
}

#[test]
fn every_pod_is_reported_on_and_the_node_goes() {
    fixture("scrap", |fixture| {
        let set = fixture.stateful_set("db", 1, 0);
        // Neither pod was deleted before: both are removed together with their Node.
        fixture.make_pod("db-0", &owned_by(&set));
        let set = fixture.replica_set("web");
        fixture.make_pod("web-1", &owned_by(&set));
        let mirror = json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}});
        fixture.make_pod("zz-static", &mirror);
        let run = force_delete(fixture, &[]).run();
        assert_snapshot!(fixture.shown(&run), @r#"
        $ kubectl maint force-delete node/worker-1
        context [context], server [server], user admin
        node/worker-1 with 3 pods
          RISK     owner             pod/db-0: a second pod of the same name may start while the first is still running: StatefulSet/db
          info     node-unreachable  the node has been unreachable for 10m, and its last heartbeat is 10m old: its pods may still be running
          9 checks ok
        -- stderr
        error: risks not accepted: owner; nothing was deleted
        hint: safer, if you can power off or isolate node/worker-1: `kubectl maint fence worker-1 -- HOOK`
        hint: to accept these risks and delete: `kubectl maint force-delete node/worker-1 --accept-risk=owner -m WHY`
        -- exit code 6
        "#);
        assert!(is_there(fixture));
        let dry = ["--accept-risk=owner", "-m", "scrapped", "--dry-run"];
        force_delete(fixture, &dry).succeeds();
        assert!(is_there(fixture), "a dry run deletes nothing");
        let words = ["--accept-risk=owner", "-m", "scrapped", "--timeout=0"];
        let run = force_delete(fixture, &words).ends_unfinished();
        let shop = &fixture.namespace;
        let message = format!(
            "node/{} force-deleted; 3 pods left: {shop}/db-0, {shop}/web-1, {shop}/zz-static; usually deleted within \
             80s\n",
            fixture.node
        );
        assert!(run.stdout.ends_with(&message), "{run}");
        assert!(!is_there(fixture));
        let events = fixture
            .cluster
            .get("/apis/events.k8s.io/v1/namespaces/default/events");
        let event = events["items"]
            .as_array()
            .expect("a list")
            .iter()
            .find(|event| {
                event["regarding"]["name"] == fixture.node.as_str()
                    && event["reason"] == "ForceDeleted"
            });
        let note = event.map(|event| event["note"].as_str().expect("a note"));
        let note = note.unwrap_or_else(|| panic!("{events:#}"));
        let accepted = format!(
            "Accepted risks: owner. Why: scrapped. Accepted risks of pods: {}/db-0 (owner). \
             Known at that time: owner of db-0: a second pod of the same name may start",
            fixture.namespace
        );
        assert!(note.contains(&accepted), "{note}");
    });
}

/// The pod is removed together with its Node. The risk was accepted for the pods of the node.
#[test]
fn a_pod_that_arrives_after_the_report_goes_with_its_node() {
    fixture("arrival", |fixture| {
        let set = fixture.stateful_set("db", 1, 0);
        fixture.make_pod("db-0", &owned_by(&set));
        let words = ["--accept-risk=owner", "-m", "why", "--timeout=0"];
        let proxy = fixture.cluster.proxy_for(Treatment::Keep, |method, path| {
            *method == Method::POST && path.contains("/leases")
        });
        let (run, kept) = proxy.holds_up(force_delete(fixture, &words));
        fixture.make_pod("db-1", &owned_by(&set));
        kept.passes();
        let run = run.ends();
        assert_eq!(run.code, 4, "{run}");
        assert!(run.stdout.contains(" with 1 pod\n"), "{run}");
        let left = format!("2 pods left: {0}/db-0, {0}/db-1;", fixture.namespace);
        assert!(run.stdout.contains(&left), "{run}");
        assert!(!is_there(fixture), "{run}");
    });
}

#[test]
fn the_pods_that_are_left_are_listed_for_programs() {
    fixture("listed", |fixture| {
        fixture.make_pod("web-1", &owned_by(&fixture.replica_set("web")));
        let words = ["--accept-risk=none", "-m", "scrapped", "--timeout=0"];
        let run = force_delete(fixture, &words).args(["-o", "json"]);
        let data: Value = serde_json::from_str(&run.ends_unfinished().stdout).expect("JSON");
        let node = &data["items"][0];
        assert_eq!(node["outcome"], "PodsLeft", "{data:#}");
        let pods = json!([format!("{}/web-1", fixture.namespace)]);
        assert_eq!(node["pods"], pods, "{data:#}");
        assert_eq!(node.get("registeredAgain"), None, "{data:#}");
    });
}

#[test]
fn a_node_that_its_finalizers_hold_is_not_reported_as_gone() {
    fixture("bound", |fixture| {
        let path = format!("/api/v1/nodes/{}", fixture.node);
        let kept = json!({"metadata": {"finalizers": ["example.com/keep"]}});
        fixture.cluster.patch(&path, &kept);
        let levels = Levels::of(force_delete(fixture, &["-o", "json"]));
        levels.are(&[("finalizers", Some("Info"))]);
        let words = ["--accept-risk=none", "-m", "scrapped"];
        let run = force_delete(fixture, &words).ends_unfinished();
        let message = format!(
            "node/{} is marked for deletion, but held by finalizer example.com/keep; its pods stay until \
             it is gone\n",
            fixture.node
        );
        assert!(run.stdout.ends_with(&message), "{run}");
        assert!(is_there(fixture));
        // The Node and its Lease still exist.
        assert_eq!(holder_of(&fixture.cluster, &fixture.node), None);
        fixture
            .cluster
            .patch(&path, &json!({"metadata": {"finalizers": null}}));
    });
}

#[test]
fn a_node_that_lives_or_is_somebody_elses_stays_unless_that_is_overridden() {
    fixture("kept", |fixture| {
        let held = json!({
            "holderIdentity": "bob@laptop", "leaseDurationSeconds": 1800,
            "acquireTime": ago(60), "renewTime": ago(60),
        });
        fixture.cluster.lease(&fixture.node, &held);
        fixture.heartbeat();
        let levels = Levels::of(force_delete(fixture, &["-o", "json"]));
        levels.are(&[
            ("target", Some("Ok")),
            ("node-alive", Some("Blocker")),
            ("lease", Some("Blocker")),
            ("lease-deleted", Some("Info")),
            ("rights", Some("Ok")),
        ]);
        let words = levels.words("lease-deleted");
        assert!(words.contains("bob@laptop may still act for"), "{words}");
        let all = ["--accept-risk", "-m", "why"];
        let run = force_delete(fixture, &all).run();
        assert_eq!(run.code, 6, "{run}");
        assert!(run.stderr.contains("refused: node-alive, lease"), "{run}");
        assert!(is_there(fixture));
        // The output names the holder whose lock was overridden.
        let anyway = ["--override=node-alive", "--override=lease"];
        let run = force_delete(fixture, &all).args(anyway).succeeds();
        let message = format!(
            "Warning: bob@laptop may still act on node/{} until ",
            fixture.node
        );
        assert!(run.stderr.contains(&message), "{run}");
        assert!(!is_there(fixture));
    });
}

#[test]
fn a_node_that_is_not_there_is_named() {
    fixture("absent", |fixture| {
        let run = fixture
            .cluster
            .maint(["force-delete", "node/worker-9"])
            .run();
        assert_eq!(run.code, 1, "{run}");
        assert!(run.stderr.contains("nodes \"worker-9\" not found"), "{run}");
    });
}
