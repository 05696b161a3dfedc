//! The Node object of a silent node, with all that goes with it.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::scene::{Levels, Scene, owned_by, scene};
use crate::support::{Maint, ago, holder_of};

fn force_delete(scene: &Scene, words: &[&str]) -> Maint {
    let node = format!("node/{}", scene.node);
    scene.cluster.maint(["force-delete", &node]).args(words)
}

fn is_there(scene: &Scene) -> bool {
    let path = format!("/api/v1/nodes/{}", scene.node);
    scene.cluster.try_send("GET", &path, None).is_ok()
}

#[test]
fn every_pod_is_reported_on_and_the_node_goes() {
    scene("scrap", |scene| {
        let set = scene.stateful_set("db", 1, 0);
        // Neither was asked to end: they go with their Node.
        scene.make_pod("db-0", &owned_by(&set));
        let set = scene.replica_set("web");
        scene.make_pod("web-1", &owned_by(&set));
        let mirror = json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}});
        scene.make_pod("zz-static", &mirror);
        let run = force_delete(scene, &[]).run();
        assert_snapshot!(scene.shown(&run), @r#"
        $ kubectl maint force-delete node/worker-1
        context [context], server [server], user admin
        node/worker-1 with 3 pods
          RISK     owner             pod/db-0: a second pod of the same name may start while the first is still running: StatefulSet/db
          info     node-unreachable  the node has been unreachable for 10m, and its last heartbeat is 10m old: its pods may still be running
          9 checks ok
        -- stderr
        error: risks not accepted: owner; nothing was deleted
        hint: safer, if you can power off or isolate node/worker-1: kubectl maint fence worker-1 -- HOOK
        hint: to accept these risks and delete: kubectl maint force-delete node/worker-1 --accept-risk=owner -m "WHY"
        -- exit code 6
        "#);
        assert!(is_there(scene));
        let dry = ["--accept-risk=owner", "-m", "scrapped", "--dry-run=server"];
        force_delete(scene, &dry).succeeds();
        assert!(is_there(scene), "a dry run deletes nothing");
        let words = ["--accept-risk=owner", "-m", "scrapped", "--timeout=0"];
        let run = force_delete(scene, &words).ends_unfinished();
        let shop = &scene.namespace;
        let told = format!(
            "node/{} force-deleted; 3 pods left: {shop}/db-0, {shop}/web-1, {shop}/zz-static; usually deleted within \
             80s\n",
            scene.node
        );
        assert!(run.stdout.ends_with(&told), "{run}");
        assert!(!is_there(scene));
        let events = scene
            .cluster
            .get("/apis/events.k8s.io/v1/namespaces/default/events");
        let event = events["items"]
            .as_array()
            .expect("a list")
            .iter()
            .find(|event| {
                event["regarding"]["name"] == scene.node.as_str()
                    && event["reason"] == "ForceDeleted"
            });
        let note = event.map(|event| event["note"].as_str().expect("a note"));
        let note = note.unwrap_or_else(|| panic!("{events:#}"));
        let given_up = format!(
            "Accepted risks: owner. Why: scrapped. Accepted risks of pods: {}/db-0 (owner). \
             Known at that time: owner of db-0: a second pod of the same name may start",
            scene.namespace
        );
        assert!(note.contains(&given_up), "{note}");
    });
}

#[test]
fn the_pods_that_are_left_are_listed_for_programs() {
    scene("listed", |scene| {
        scene.make_pod("web-1", &owned_by(&scene.replica_set("web")));
        let words = ["--accept-risk=none", "-m", "scrapped", "--timeout=0"];
        let run = force_delete(scene, &words).args(["-o", "json"]);
        let data: Value = serde_json::from_str(&run.ends_unfinished().stdout).expect("JSON");
        let node = &data["items"][0];
        assert_eq!(node["outcome"], "PodsLeft", "{data:#}");
        let pods = json!([format!("{}/web-1", scene.namespace)]);
        assert_eq!(node["pods"], pods, "{data:#}");
        assert_eq!(node.get("registeredAgain"), None, "{data:#}");
    });
}

#[test]
fn a_node_that_its_finalizers_hold_is_not_told_to_be_gone() {
    scene("bound", |scene| {
        let path = format!("/api/v1/nodes/{}", scene.node);
        let kept = json!({"metadata": {"finalizers": ["example.com/keep"]}});
        scene.cluster.patch(&path, &kept);
        let levels = Levels::of(force_delete(scene, &["-o", "json"]));
        levels.are(&[("finalizers", Some("Info"))]);
        let words = ["--accept-risk=none", "-m", "scrapped"];
        let run = force_delete(scene, &words).ends_unfinished();
        let told = format!(
            "node/{} is marked for deletion, but held by finalizer example.com/keep; its pods stay until \
             it is gone\n",
            scene.node
        );
        assert!(run.stdout.ends_with(&told), "{run}");
        assert!(is_there(scene));
        // It is there, and so is its lease.
        assert_eq!(holder_of(&scene.cluster, &scene.node), None);
        let run = force_delete(scene, &words).ends_unfinished();
        let told = format!(
            "node/{} is already deleted, but held by finalizer example.com/keep; it is gone when its \
             controller removes the finalizer\n",
            scene.node
        );
        assert!(run.stdout.ends_with(&told), "{run}");
        scene
            .cluster
            .patch(&path, &json!({"metadata": {"finalizers": null}}));
    });
}

#[test]
fn a_node_that_lives_or_is_somebody_elses_stays_unless_that_is_overridden() {
    scene("kept", |scene| {
        let held = json!({
            "holderIdentity": "bob@laptop", "leaseDurationSeconds": 1800,
            "acquireTime": ago(60), "renewTime": ago(60),
        });
        scene.cluster.lease(&scene.node, &held);
        scene.heartbeat();
        let levels = Levels::of(force_delete(scene, &["-o", "json"]));
        levels.are(&[
            ("target", Some("Ok")),
            ("node-alive", Some("Blocker")),
            ("lease", Some("Blocker")),
            ("lease-goes", Some("Info")),
            ("rights", Some("Ok")),
        ]);
        let words = levels.words("lease-goes");
        assert!(words.contains("bob@laptop may still act for"), "{words}");
        let all = ["--accept-risk", "-m", "why"];
        let run = force_delete(scene, &all).run();
        assert_eq!(run.code, 6, "{run}");
        assert!(run.stderr.contains("refused: node-alive, lease"), "{run}");
        assert!(is_there(scene));
        // Who breaks the lock is told of whom.
        let anyway = ["--override=node-alive", "--override=lease"];
        let run = force_delete(scene, &all).args(anyway).succeeds();
        let told = format!(
            "Warning: bob@laptop may still act on node/{} until ",
            scene.node
        );
        assert!(run.stderr.contains(&told), "{run}");
        assert!(!is_there(scene));
    });
}

#[test]
fn the_finalizers_of_a_node_are_warned_of() {
    scene("final", |scene| {
        let path = format!("/api/v1/nodes/{}", scene.node);
        let report = || Levels::of(force_delete(scene, &["-o", "json"]));
        report().are(&[("finalizers", Some("Ok"))]);
        let kept = |finalizers| json!({"metadata": {"finalizers": finalizers}});
        let of_another = json!(["example.com/machine"]);
        scene.cluster.patch(&path, &kept(of_another));
        let levels = report();
        levels.are(&[("finalizers", Some("Info"))]);
        let words = levels.words("finalizers");
        assert!(words.ends_with(": example.com/machine"), "{words}");
        scene.cluster.patch(&path, &kept(json!(null)));
    });
}

#[test]
fn a_node_that_is_not_there_is_named() {
    scene("absent", |scene| {
        let run = scene.cluster.maint(["force-delete", "node/worker-9"]).run();
        assert_eq!(run.code, 1, "{run}");
        assert!(run.stderr.contains("nodes \"worker-9\" not found"), "{run}");
    });
}
