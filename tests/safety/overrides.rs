//! Each blocker is lifted only by its own override.

use control_plane::Rule;
use serde_json::json;

use crate::fixture::{fixture, owned_by};
use crate::support::{ago, holder_of};

#[test]
fn pods_that_nobody_deleted_need_their_own_override() {
    fixture("unasked", |fixture| {
        let set = fixture.replica_set("web");
        fixture.make_pod("web-1", &owned_by(&set));
        let words = ["--accept-risk=none", "-m", "why", "--override=in-grace"];
        let run = fixture.force_delete("web-1", &words).run();
        assert_eq!(run.code, 6, "{run}");
        assert!(run.stderr.contains("refused: not-deleting"), "{run}");
        let hint = "\nhint: run `kubectl delete pod web-1 -n ";
        assert!(run.stderr.contains(hint), "{run}");
        let then = " --wait=false` and wait until the grace period ends; then: `kubectl maint ";
        assert!(run.stderr.contains(then), "{run}");
        assert!(fixture.is_there("web-1"));
        let run = fixture.force_delete("web-1", &words);
        run.arg("--override=not-deleting").succeeds();
        assert!(!fixture.is_there("web-1"));
    });
}

#[test]
fn a_pod_goes_beside_the_lock_of_somebody_else_who_keeps_it() {
    fixture("beside", |fixture| {
        fixture.harmless_pod("web-1");
        let held = json!({
            "holderIdentity": "bob@laptop", "leaseDurationSeconds": 1800,
            "acquireTime": ago(60), "renewTime": ago(60),
        });
        fixture.cluster.lease(&fixture.node, &held);
        let words = ["--accept-risk=none", "-m", "why"];
        let run = fixture.force_delete("web-1", &words).run();
        assert_eq!(run.code, 6, "{run}");
        let hint = "\nhint: ask bob@laptop to release the lock; then: `kubectl maint ";
        assert!(run.stderr.contains(hint), "{run}");
        let run = fixture.force_delete("web-1", &words);
        run.arg("--override=lease").succeeds();
        assert!(!fixture.is_there("web-1"));
        let holder = holder_of(&fixture.cluster, &fixture.node);
        assert_eq!(holder.as_deref(), Some("bob@laptop"));
    });
}

#[test]
fn the_line_keeps_what_is_overridden_and_an_override_alone_is_a_decision() {
    fixture("overriding", |fixture| {
        let set = fixture.replica_set("web");
        fixture.make_pod("web-2", &owned_by(&set));
        let words = ["--override=in-grace", "-m", "why"];
        let run = fixture.force_delete("web-2", &words).run();
        assert_eq!(run.code, 6, "{run}");
        let line = " --accept-risk=none --override=in-grace -m why`\n";
        assert!(run.stderr.ends_with(line), "{run}");
        assert!(run.stdout.contains("(--override=not-deleting)\n"), "{run}");
        let words = ["--override=not-deleting", "-m", "why"];
        let run = fixture.force_delete("web-2", &words).succeeds();
        let blocker = |line: &&str| line.starts_with("  BLOCKER  not-deleting ");
        let blocker = run.stdout.lines().find(blocker).expect("it is shown");
        assert!(blocker.ends_with(" (overridden)"), "{run}");
        assert!(!fixture.is_there("web-2"));
    });
}

#[test]
fn a_right_that_seems_missing_is_decided_by_the_server() {
    fixture("insists", |fixture| {
        fixture.harmless_pod("web-1");
        let user = fixture.user("dev", &[Rule::new("", &["pods"], &["get"])]);
        let words = ["--accept-risk", "-m", "why", "--override=rights"];
        let run = fixture
            .force_delete("web-1", &words)
            .kubeconfig(&user)
            .run();
        assert_eq!(run.code, 1, "{run}");
        assert!(run.stderr.contains("(Forbidden)"), "{run}");
        assert!(fixture.is_there("web-1"));
    });
}
