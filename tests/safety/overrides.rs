//! Each refusal that is lifted by its own override, and by that alone.

use control_plane::Rule;
use serde_json::json;

use crate::scene::{owned_by, scene};
use crate::support::{ago, holder_of};

#[test]
fn what_nobody_asked_to_end_goes_by_its_own_override() {
    scene("unasked", |scene| {
        let set = scene.replica_set("web");
        scene.make_pod("web-1", &owned_by(&set));
        let words = ["--accept-risk=none", "-m", "why", "--override=in-grace"];
        let run = scene.force_delete("web-1", &words).run();
        assert_eq!(run.code, 6, "{run}");
        assert!(run.stderr.contains("refused: not-deleting"), "{run}");
        assert!(scene.is_there("web-1"));
        let run = scene.force_delete("web-1", &words);
        run.arg("--override=not-deleting").succeeds();
        assert!(!scene.is_there("web-1"));
    });
}

#[test]
fn a_pod_goes_beside_the_lock_of_somebody_else_who_keeps_it() {
    scene("beside", |scene| {
        scene.harmless_pod("web-1");
        let held = json!({
            "holderIdentity": "bob@laptop", "leaseDurationSeconds": 1800,
            "acquireTime": ago(60), "renewTime": ago(60),
        });
        scene.cluster.lease(&scene.node, &held);
        let words = ["--accept-risk=none", "-m", "why"];
        let run = scene.force_delete("web-1", &words).run();
        assert_eq!(run.code, 6, "{run}");
        let run = scene.force_delete("web-1", &words);
        run.arg("--override=lease").succeeds();
        assert!(!scene.is_there("web-1"));
        let holder = holder_of(&scene.cluster, &scene.node);
        assert_eq!(holder.as_deref(), Some("bob@laptop"));
    });
}

#[test]
fn the_earlier_name_of_the_flag_still_works_with_a_warning() {
    scene("renamed", |scene| {
        scene.harmless_pod("web-1");
        let words = ["--confirm=nothing", "-m", "why"];
        let run = scene.force_delete("web-1", &words).succeeds();
        let renamed = "Warning: --confirm is deprecated: use --accept-risk\n";
        assert!(run.stderr.contains(renamed), "{run}");
        assert!(!scene.is_there("web-1"));
    });
}

#[test]
fn the_line_keeps_what_is_overridden_and_an_override_alone_is_a_decision() {
    scene("overriding", |scene| {
        let set = scene.replica_set("web");
        scene.make_pod("web-2", &owned_by(&set));
        let words = ["--override=in-grace", "-m", "why"];
        let run = scene.force_delete("web-2", &words).run();
        assert_eq!(run.code, 6, "{run}");
        let line = " --accept-risk=none --override=in-grace -m why\n";
        assert!(run.stderr.ends_with(line), "{run}");
        assert!(run.stdout.contains("(--override=not-deleting)\n"), "{run}");
        let words = ["--override=not-deleting", "-m", "why"];
        let run = scene.force_delete("web-2", &words).succeeds();
        assert!(!run.stderr.contains("is deprecated"), "{run}");
        let blocker = |line: &&str| line.starts_with("  BLOCKER  not-deleting ");
        let blocker = run.stdout.lines().find(blocker).expect("it is shown");
        assert!(blocker.ends_with(" (overridden)"), "{run}");
        assert!(!scene.is_there("web-2"));
    });
}

#[test]
fn who_is_said_to_lack_the_right_may_have_the_server_decide() {
    scene("insists", |scene| {
        scene.harmless_pod("web-1");
        let user = scene.user("dev", &[Rule::new("", &["pods"], &["get"])]);
        let words = ["--accept-risk", "-m", "why", "--override=rights"];
        let run = scene.force_delete("web-1", &words).kubeconfig(&user).run();
        assert_eq!(run.code, 1, "{run}");
        assert!(run.stderr.contains("(Forbidden)"), "{run}");
        assert!(scene.is_there("web-1"));
    });
}
