//! Forced deletion, from the report to its result.

use control_plane::Rule;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::fixture::{Fixture, TRACKING, fixture};
use crate::support::{Run, events_of, holder_of};

/// The notes of the Events in the namespace that are about `name`.
fn evidence(fixture: &Fixture, kind: &str, name: &str) -> Vec<String> {
    let events = fixture.events();
    let about = events.iter().filter(|event| {
        let regarding = &event["regarding"];
        regarding["kind"] == kind && regarding["name"] == name
    });
    about
        .map(|event| event["note"].as_str().expect("a note").to_owned())
        .collect()
}

#[test]
fn the_report_shows_the_risks_and_the_next_command() {
    fixture("report", |fixture| {
        fixture.ended_member(3, 1);
        let run = fixture.force_delete("web-0", &[]).run();
        assert_snapshot!(fixture.shown(&run), @"
        $ kubectl maint force-delete pod/web-0 -n shop
        context [context], server [server], user admin
        pod/web-0 in namespace shop on node/worker-1
          RISK     owner             a second pod of the same name may start while the first is still running: StatefulSet/web
          RISK     quorum            no majority is ready without it, so members that need a quorum cannot remove it; deletion may be the only way back, but if the old member still runs, both may serve different data: StatefulSet/web (1 of 3 ready without it)
          info     node-unreachable  the node has been unreachable for 10m, and its last heartbeat is 10m old: its pods may still be running
          8 checks ok
        -- stderr
        error: risks not accepted: owner, quorum; nothing was deleted
        hint: safer, if you can power off or isolate node/worker-1: `kubectl maint fence worker-1 -- HOOK`
        hint: to accept these risks and delete: `kubectl maint force-delete pod/web-0 -n shop --accept-risk=owner,quorum -m WHY`
        -- exit code 6
        ");
        assert!(fixture.is_there("web-0"));
        let yaml = fixture.force_delete("web-0", &["-o", "yaml"]).run();
        assert!(
            yaml.stdout
                .contains("acceptRisk: --accept-risk=owner,quorum"),
            "{yaml}"
        );
        let line = run
            .stderr
            .rsplit_once("kubectl maint force-delete ")
            .expect("a line")
            .1;
        let line = line.trim_end().trim_end_matches('`');
        let line = line.replace("-m WHY", "-m why");
        let words: Vec<&str> = line.split(' ').collect();
        let line = std::iter::once("force-delete").chain(words);
        let run = fixture.cluster.maint(line).run();
        assert_snapshot!(fixture.shown(&run), @"
        $ kubectl maint force-delete pod/web-0 -n shop --accept-risk=owner,quorum -m why
        context [context], server [server], user admin
        pod/web-0 in namespace shop on node/worker-1
          RISK     owner             a second pod of the same name may start while the first is still running: StatefulSet/web
          RISK     quorum            no majority is ready without it, so members that need a quorum cannot remove it; deletion may be the only way back, but if the old member still runs, both may serve different data: StatefulSet/web (1 of 3 ready without it)
          info     node-unreachable  the node has been unreachable for 10m, and its last heartbeat is 10m old: its pods may still be running
          8 checks ok
        pod/web-0 force-deleted
        -- stderr
        lease/worker-1 created
        node/worker-1 locked by alice@bastion during the deletion
        StatefulSet/web: 1 of 3 ready (namespace shop)
        -- exit code 0
        ");
        assert!(!fixture.is_there("web-0"));
        let notes = evidence(fixture, "StatefulSet", "web");
        assert_eq!(notes.len(), 1);
        let note = &notes[0];
        assert!(
            note.starts_with("alice@bastion force-deleted pod/web-0 (uid "),
            "{note}"
        );
        assert!(
            note.contains(
                "). Accepted risks: owner, quorum. Why: why. Known at that time: owner: a second pod"
            ),
            "{note}"
        );
        assert!(
            note.contains("; node-unreachable: the node has been unreachable"),
            "{note}"
        );
        // The lock of the node was acquired and released.
        assert_eq!(holder_of(&fixture.cluster, &fixture.node), None);
        let lease = fixture.cluster.lease_of(&fixture.node);
        assert_eq!(lease["spec"]["leaseTransitions"], 1);
    });
}

/// The suggested command at the end of a run, without the name of the program.
fn line_of(run: &Run) -> &str {
    let line = run.stderr.lines().last().expect("a hint");
    let (_, line) = line.rsplit_once(": `kubectl maint ").expect("a line");
    line.trim_end_matches('`')
}

#[test]
fn the_next_command_keeps_the_targets_the_reason_and_the_dry_run() {
    fixture("again", |fixture| {
        fixture.ended_member(3, 1);
        let words = [
            "--as=root",
            "--as-group=system:masters",
            "--dry-run",
            "--timeout=5m",
            "-o",
            "wide",
            "-m",
            "it's unplugged",
            "--accept-risk=owner",
            "--override=in-grace",
        ];
        let run = fixture.force_delete("web-0", &words).run();
        assert_eq!(run.code, 6, "{run}");
        let line = format!(
            "force-delete pod/web-0 -n {} --dry-run --accept-risk=owner,quorum --override=in-grace \
             -m 'it'\\''s unplugged' --as root --as-group system:masters",
            fixture.namespace
        );
        assert_eq!(line_of(&run), line, "{run}");
    });
}

#[test]
fn under_a_lock_of_with_the_line_acts_as_its_holder() {
    fixture("under", |fixture| {
        fixture.harmless_pod("web-1");
        let script = format!(
            r#"PATH=/usr/bin:/bin
            said=$("$PLUGIN" force-delete pod/web-1 -n {} --accept-risk=none -m why 2>&1 >/dev/null)
            echo "$said"
            said=${{said##*kubectl maint }}
            eval "\"$PLUGIN\" ${{said%%\`*}}""#,
            fixture.namespace
        );
        let with = ["with", &fixture.node, "--", "/bin/sh", "-c", &script];
        let run = fixture.cluster.maint(with).succeeds();
        let refused = "error: refused: lease; nothing was deleted\n\
                       hint: this runs inside `with`, which has the lock; act as its holder: `kubectl maint \
                       force-delete pod/web-1 ";
        assert!(run.stdout.contains(refused), "{run}");
        let holder = " -m why --holder alice@bastion/with-";
        assert!(run.stdout.contains(holder), "{run}");
        assert!(run.stdout.contains("\n  9 checks ok\n"), "{run}");
        assert!(!fixture.is_there("web-1"));
    });
}

#[test]
fn a_risk_that_is_not_named_is_not_accepted() {
    fixture("named", |fixture| {
        fixture.ended_member(3, 1);
        let some = ["--accept-risk=owner", "-m", "why"];
        let run = fixture.force_delete("web-0", &some).run();
        assert_eq!(run.code, 6, "{run}");
        assert!(
            run.stderr
                .contains("risks not accepted: quorum; nothing was deleted"),
            "{run}"
        );
        assert!(fixture.is_there("web-0"));
        assert_eq!(holder_of(&fixture.cluster, &fixture.node), None);
        let bare = ["--accept-risk", "-m", "why"];
        fixture.force_delete("web-0", &bare).succeeds();
        assert!(!fixture.is_there("web-0"));
    });
}

#[test]
fn a_dry_run_deletes_nothing() {
    fixture("dry", |fixture| {
        fixture.harmless_pod("web-1");
        let words = ["--accept-risk", "-m", "why", "--dry-run"];
        let run = fixture.force_delete("web-1", &words).succeeds();
        let line = "pod/web-1 force-deleted (dry run)";
        assert!(run.stdout.contains(line), "{run}");
        assert!(fixture.is_there("web-1"));
        assert_eq!(holder_of(&fixture.cluster, &fixture.node), None);
        assert_eq!(evidence(fixture, "ReplicaSet", "web-1"), [""; 0]);
    });
}

#[test]
fn a_finalizer_holds_the_object() {
    fixture("held", |fixture| {
        let set = fixture.stateful_set("web", 1, 0);
        let kept = json!({"metadata": {"finalizers": ["example.com/keep"]}});
        fixture.ended_pod("web-1", Some(&set), &kept);
        let words = ["--accept-risk=owner", "-m", "why"];
        let run = fixture.force_delete("web-1", &words).ends_unfinished();
        let line = "pod/web-1 is marked for deletion, but held by finalizer example.com/keep";
        assert!(run.stdout.contains(line), "{run}");
        let pod = fixture.cluster.get(&fixture.pod_path("web-1"));
        assert_eq!(pod["metadata"]["finalizers"][0], "example.com/keep");
        assert_eq!(evidence(fixture, "StatefulSet", "web").len(), 1);

        let data = fixture.force_delete("web-1", &words).args(["-o", "json"]);
        let data: Value = serde_json::from_str(&data.ends_unfinished().stdout).expect("JSON");
        assert_eq!(data["items"][0]["outcome"], "HeldByFinalizer", "{data:#}");
        fixture.cluster.patch(
            &fixture.pod_path("web-1"),
            &json!({"metadata": {"finalizers": null}}),
        );
    });
}

/// Pod garbage collection does the same: the Job waits for a phase that no kubelet reports.
#[test]
fn a_pod_that_its_job_keeps_is_set_to_failed_first() {
    fixture("tracked", |fixture| {
        fixture.ended_job_pod("copy-1");
        let path = fixture.pod_path("copy-1");
        let levels = fixture.levels("copy-1");
        levels.are(&[("owner", Some("Risk")), ("finalizers", Some("Info"))]);
        let words = ["--accept-risk=owner", "-m", "why", "--timeout=0"];
        let dry_run = fixture.force_delete("copy-1", &words).args(["--dry-run"]);
        let message = "pod/copy-1 force-deleted (dry run)\n";
        assert!(dry_run.succeeds().stdout.ends_with(message));
        assert_eq!(fixture.cluster.get(&path)["status"]["phase"], "Running");

        let run = fixture.force_delete("copy-1", &words).ends_unfinished();
        let held = format!(
            "pod/copy-1 is marked for deletion, but held by finalizer {TRACKING}; its name is free when its controller removes the finalizer\n"
        );
        assert!(run.stdout.ends_with(&held), "{run}");
        let pod = fixture.cluster.get(&path);
        assert_eq!(pod["status"]["phase"], "Failed");
        assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 0);
        let conditions = pod["status"]["conditions"].as_array().expect("a list");
        let kind = |one: &&Value| one["type"] == "DisruptionTarget";
        let disrupted = conditions.iter().find(kind).expect("the policy sees it");
        assert_eq!(
            (&disrupted["status"], &disrupted["reason"]),
            (&json!("True"), &json!("ForceDeleted"))
        );
        assert!(
            conditions.iter().any(|one| one["type"] == "Ready"),
            "{pod:#}"
        );
    });
}

#[test]
fn a_pod_that_was_marked_failed_but_not_deleted_is_reported() {
    fixture("marked", |fixture| {
        fixture.ended_job_pod("copy-1");
        let rules = [
            Rule::new("", &["pods"], &["get"]),
            Rule::new("", &["pods/status"], &["patch"]),
        ];
        let user = fixture.user("vic", &rules);
        let words = ["--accept-risk", "--override=rights", "-m", "why"];
        let run = fixture
            .force_delete("copy-1", &words)
            .kubeconfig(&user)
            .run();
        assert_eq!(run.code, 1, "{run}");
        let message = "pod/copy-1 was marked Failed, but not deleted: ";
        assert!(run.stdout.contains(message), "{run}");
        let pod = fixture.cluster.get(&fixture.pod_path("copy-1"));
        assert_eq!(pod["status"]["phase"], "Failed");
        assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 1);
        let freed = json!({"metadata": {"finalizers": null}});
        fixture.cluster.patch(&fixture.pod_path("copy-1"), &freed);
    });
}

#[test]
fn a_pod_that_its_job_keeps_takes_the_right_to_set_its_phase() {
    fixture("phase", |fixture| {
        fixture.ended_job_pod("copy-1");
        let rules = [Rule::new("", &["pods"], &["get", "delete"])];
        let user = fixture.user("vic", &rules);
        let levels = fixture.levels_for(&user, "copy-1");
        assert_eq!(levels.all("rights"), ["Ok", "Blocker"]);
        let message = "you do not have permission to patch pods/status";
        assert!(levels.has("rights", message));
    });
}

/// An owner is named once, and its replicas are read once: nothing waits for them.
#[test]
fn owners_that_miss_pods_are_listed() {
    fixture("incomplete", |fixture| {
        let set = fixture.stateful_set("db", 3, 1);
        for pod in ["db-0", "db-1"] {
            fixture.ended_pod(pod, Some(&set), &json!({}));
        }
        fixture.harmless_pod("web-1");
        let complete = fixture.stateful_set("full", 1, 1);
        fixture.ended_pod("full-0", Some(&complete), &json!({}));
        let words = ["force-delete", "-l", "app=web", "-n", &fixture.namespace];
        let accept = ["--accept-risk", "-m", "why", "-o", "json"];
        let run = fixture.cluster.maint(words).args(accept).succeeds();
        let shop = &fixture.namespace;
        let data: Value = serde_json::from_str(&run.stdout).expect("JSON");
        let owner = |kind: &str, name: &str, ready: u32, replicas: u32| json!({"namespace": shop, "kind": kind, "name": name, "ready": ready, "replicas": replicas});
        let expected = json!([
            owner("ReplicaSet", "web-1", 0, 1),
            owner("StatefulSet", "db", 1, 3)
        ]);
        assert_eq!(data["incompleteOwners"], expected, "{data:#}");
    });
}

#[test]
fn it_waits_until_the_job_of_a_pod_has_counted_it() {
    fixture("counted", |fixture| {
        fixture.ended_job_pod("copy-1");
        let words = ["--accept-risk=owner", "-m", "why"];
        let run = fixture
            .force_delete("copy-1", &words)
            .until_it_says("waiting up to 2m until its Job has counted it");
        let freed = json!({"metadata": {"finalizers": null}});
        fixture.cluster.patch(&fixture.pod_path("copy-1"), &freed);
        let run = run.ends();
        assert_eq!(run.code, 0, "{run}");
        assert!(run.stdout.ends_with("pod/copy-1 force-deleted\n"), "{run}");
    });
}

#[test]
fn an_interrupted_wait_leaves_the_event_and_no_lease() {
    fixture("waiting", |fixture| {
        for (name, signal) in [("copy-1", Signal::INT), ("copy-2", Signal::TERM)] {
            fixture.ended_job_pod(name);
            let run = fixture
                .force_delete(name, &["--accept-risk=owner", "-m", "why"])
                .until_it_says("waiting up to 2m until its Job has counted it");
            assert_eq!(holder_of(&fixture.cluster, &fixture.node), None);
            assert_eq!(evidence(fixture, "Job", name).len(), 1);
            run.is_sent(signal);
            let run = run.ends();
            assert_eq!(run.code, 130, "{run}");
            let message = format!("pod/{name} force-deleted; interrupted before it was gone\n");
            assert!(run.stdout.ends_with(&message), "{run}");
            assert_eq!(evidence(fixture, "Job", name).len(), 1);
            let freed = json!({"metadata": {"finalizers": null}});
            fixture.cluster.patch(&fixture.pod_path(name), &freed);
        }
    });
}

#[test]
fn an_own_lease_is_left_as_found() {
    fixture("own", |fixture| {
        fixture.harmless_pod("web-1");
        fixture
            .cluster
            .maint(["hold", &fixture.node, "-m", "mine"])
            .succeeds();
        let words = ["--accept-risk=none", "-m", "why"];
        fixture.force_delete("web-1", &words).succeeds();
        let holder = holder_of(&fixture.cluster, &fixture.node);
        assert_eq!(holder.as_deref(), Some("kubeadm:alice@bastion"));
    });
}

#[test]
fn of_several_pods_all_or_none_go() {
    fixture("several", |fixture| {
        fixture.harmless_pod("web-1");
        fixture.ended_member(1, 0);
        let force_delete = |words: &[&str]| {
            fixture
                .cluster
                .maint(["force-delete", "-l", "app=web", "-n", &fixture.namespace])
                .args(words)
        };
        let run = force_delete(&["--accept-risk=none", "-m", "why"]).run();
        assert_eq!(run.code, 6, "{run}");
        assert!(fixture.is_there("web-0") && fixture.is_there("web-1"));
        let run = force_delete(&["--accept-risk=owner", "-m", "why", "-o", "name"]);
        assert_eq!(run.succeeds().stdout, "pod/web-0\npod/web-1\n");
        assert!(!fixture.is_there("web-0") && !fixture.is_there("web-1"));
    });
}

#[test]
fn evidence_that_is_too_long_for_the_server_is_cut_with_a_note() {
    fixture("long", |fixture| {
        let set = fixture.stateful_set("web", 3, 1);
        let finalizers: Vec<String> = (0..10)
            .map(|n| format!("example.com/{}-{n}", "k".repeat(60)))
            .collect();
        let kept = json!({"metadata": {"finalizers": finalizers}});
        fixture.ended_pod("web-0", Some(&set), &kept);
        let words = ["--accept-risk=owner,quorum", "-m", &"w".repeat(1000)];
        fixture.force_delete("web-0", &words).ends_unfinished();
        let notes = evidence(fixture, "StatefulSet", "web");
        let [note] = &notes[..] else {
            panic!("{notes:?}");
        };
        assert!(
            note.contains(" Accepted risks: owner, quorum. Why: www"),
            "{note}"
        );
        assert!(note.contains("; finalizers: "), "{note}");
        assert!(note.ends_with('…') && note.len() <= 1024, "{note}");
        let free = json!({"metadata": {"finalizers": null}});
        fixture.cluster.patch(&fixture.pod_path("web-0"), &free);
    });
}

#[test]
fn without_an_owner_the_evidence_is_on_the_node() {
    fixture("alone", |fixture| {
        fixture.ended_pod("alone", None, &json!({}));
        let words = ["--accept-risk=no-owner", "-m", "why"];
        fixture.force_delete("alone", &words).succeeds();
        let events = events_of(&fixture.cluster, &fixture.node);
        assert!(
            events.starts_with("Warning ForceDeleted: alice@bastion force-deleted pod/alone "),
            "{events}"
        );
    });
}
