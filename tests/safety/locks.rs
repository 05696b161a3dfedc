//! The lock of the node during a deletion. Its holder includes the process id.

use http::Method;
use serde_json::json;

use crate::fixture::{Fixture, fixture};
use crate::support::{Maint, Proxy, Treatment, holder_of};

/// A proxy that keeps the requests that delete pods.
fn proxy(fixture: &Fixture) -> Proxy {
    fixture.cluster.proxy_for(Treatment::Keep, |method, path| {
        *method == Method::DELETE && path.contains("/pods/")
    })
}

/// Deletes two pods, one after the other.
fn two(fixture: &Fixture) -> Maint {
    fixture.cluster.maint([
        "force-delete",
        "pod/web-1",
        "pod/web-2",
        "-n",
        &fixture.namespace,
        "--accept-risk=none",
        "-m",
        "why",
    ])
}

#[test]
fn a_second_run_of_the_same_user_is_refused() {
    fixture("second", |fixture| {
        for pod in ["web-1", "web-2"] {
            fixture.harmless_pod(pod);
        }
        let node = &fixture.node;
        let words = ["--accept-risk=none", "-m", "why"];
        let proxy = proxy(fixture);
        let (first, kept) = proxy.holds_up(fixture.force_delete("web-1", &words));
        let second = fixture.force_delete("web-2", &words).run();
        assert_eq!(second.code, 6, "{second}");
        let refused = format!(
            "error: refused: lease; nothing was deleted\n\
             hint: a `force-delete` command of alice@bastion has the lock; then: \
             `kubectl maint force-delete pod/web-2 -n {} ",
            fixture.namespace
        );
        assert!(second.stderr.contains(&refused), "{second}");
        assert!(fixture.is_there("web-2"));

        // Other commands of the same user don't count it as their own lock either.
        let wait = "hint: a `force-delete` command of alice@bastion has the lock; \
                    wait for the lock with `kubectl maint ";
        let acquired = fixture.cluster.maint(["acquire", node]).run();
        assert_eq!(acquired.code, 3, "{acquired}");
        let line = format!("{wait}acquire {node} --wait`\n");
        assert!(acquired.stderr.contains(&line), "{acquired}");
        let fence = ["fence", node, "--powered-off=unplugged", "-m", "why"];
        let fenced = fixture.cluster.maint(fence).run();
        assert_eq!(fenced.code, 3, "{fenced}");
        let line = format!("{wait}wait {node}`\n");
        assert!(fenced.stderr.contains(&line), "{fenced}");
        let released = fixture.cluster.maint(["release", node]).run();
        assert_eq!(released.code, 3, "{released}");
        assert!(released.stderr.contains(&line), "{released}");

        assert_eq!(kept.passes(), 200);
        assert_eq!(first.ends().code, 0);
        assert_eq!(holder_of(&fixture.cluster, node), None);
        fixture.force_delete("web-2", &words).succeeds();
    });
}

/// Each deletion is valid only for the checked version of the pod. The other holder's lock stays, whether it was taken
/// over from this command or from the caller.
#[test]
fn a_lock_that_is_taken_over_meanwhile_is_left_to_its_holder() {
    for (name, had_before) in [("broken", false), ("broken-own", true)] {
        fixture(name, |fixture| {
            for pod in ["web-1", "web-2"] {
                fixture.harmless_pod(pod);
            }
            let node = &fixture.node;
            if had_before {
                fixture.cluster.maint(["acquire", node]).succeeds();
            }
            let proxy = proxy(fixture);
            let (run, kept) = proxy.holds_up(two(fixture));
            let take_over = ["hold", node, "-m", "my turn", "--take-over", "--yes"];
            fixture
                .cluster
                .maint(take_over)
                .holder("bob@laptop")
                .succeeds();
            assert_eq!(kept.passes(), 200);
            assert_eq!(proxy.kept().passes(), 200);
            let run = run.ends();
            assert_eq!(run.code, 0, "{run}");
            for wrong in ["could not release", "was released"] {
                assert!(!run.stderr.contains(wrong), "{run}");
            }
            assert!(!fixture.is_there("web-1") && !fixture.is_there("web-2"));
            let holder = holder_of(&fixture.cluster, node);
            assert_eq!(holder.as_deref(), Some("kubeadm:bob@laptop"));
        });
    }
}

/// An earlier lock names an API user too. The lock of the deletion must not inherit that name.
#[test]
fn the_lock_names_the_api_user_of_the_caller() {
    fixture("signed", |fixture| {
        fixture.harmless_pod("web-1");
        let node = &fixture.node;
        fixture.cluster.maint(["acquire", node]).succeeds();
        fixture.cluster.maint(["release", node]).succeeds();
        let user = || {
            let lease = fixture.cluster.lease_of(node);
            lease["metadata"]["annotations"]["kubectl-maint.dev/user"].clone()
        };
        assert_eq!(user(), "1-admin");
        let proxy = proxy(fixture);
        let words = ["--accept-risk=none", "-m", "why"];
        let (run, kept) = proxy.holds_up(fixture.force_delete("web-1", &words));
        assert_eq!(user(), "2-admin");
        assert_eq!(kept.passes(), 200);
        assert_eq!(run.ends().code, 0);
    });
}

#[test]
fn an_expired_lock_of_somebody_else_must_be_accepted() {
    fixture("expired", |fixture| {
        fixture.harmless_pod("web-1");
        let hour_ago = (chrono::Utc::now() - chrono::TimeDelta::hours(1))
            .to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
        let spec = json!({
            "holderIdentity": "bob@laptop", "leaseDurationSeconds": 60,
            "acquireTime": hour_ago, "renewTime": hour_ago,
        });
        fixture.cluster.lease(&fixture.node, &spec);

        let refused = fixture
            .force_delete("web-1", &["--accept-risk=none", "-m", "why"])
            .run();
        assert_eq!(refused.code, 6, "{refused}");
        let message = "the lock of bob@laptop has expired, so they may not have finished: ask them";
        assert!(refused.to_string().contains(message), "{refused}");
        assert!(
            refused.stderr.contains("--accept-risk=lease-expired"),
            "{refused}"
        );
        assert!(fixture.is_there("web-1"));
        let holder = holder_of(&fixture.cluster, &fixture.node);
        assert_eq!(holder.as_deref(), Some("bob@laptop"));

        fixture
            .force_delete("web-1", &["--accept-risk=lease-expired", "-m", "why"])
            .succeeds();
        assert!(!fixture.is_there("web-1"));
    });
}
