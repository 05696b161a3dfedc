//! The default holder: the API user, unless that user is shared or unknown.

use serde_json::Value;

use crate::support::Treatment::Foreign;
use crate::support::{Cluster, Maint, in_memory, on_both, on_one, on_real, requests};

/// Runs a command as this API user, without a configured holder.
fn by(cluster: &Cluster, user: &str, line: &str) -> Maint {
    let maint = cluster.maint(line.split_whitespace());
    let maint = maint.without_env("KUBECTL_MAINT_HOLDER").env("USER", "al");
    maint.args(["--as", user, "--as-group", "system:masters"])
}

fn whoami(maint: Maint) -> Value {
    let run = maint.args(["-o", "json"]).succeeds();
    serde_json::from_str(&run.stdout).expect("JSON")
}

#[test]
fn is_the_api_user() {
    on_both("holder-user", |cluster| {
        let node = cluster.node("worker-1");
        let line = |verb: &str| format!("{verb} {node}");
        let acquired = by(cluster, "alice@example.com", &line("acquire")).succeeds();
        assert!(
            acquired.stdout.contains(" acquired by alice@example.com"),
            "{acquired}"
        );
        let lease = cluster.lease_of(&node);
        assert_eq!(lease["spec"]["holderIdentity"], "alice@example.com");
        assert_eq!(
            lease["metadata"]["annotations"]["kubectl-maint.dev/user"],
            "1-alice@example.com"
        );
        // The holder is the same on any machine and for any local user.
        let released = by(cluster, "alice@example.com", &line("release")).env("USER", "root");
        released.succeeds();
        by(cluster, "kubeadmin", &line("hold -m why")).succeeds();
        let lease = cluster.lease_of(&node);
        assert_eq!(lease["spec"]["holderIdentity"], "kubeadm:user:kubeadmin");
        by(cluster, "kubeadmin", &line("release")).succeeds();
    });
}

#[test]
fn is_not_an_api_user_that_is_shared() {
    on_one("holder-shared", |cluster| {
        for (user, shared) in [
            ("kubernetes-admin", ""),
            ("system:admin", ""),
            ("breakglass", "ops, breakglass"),
        ] {
            let maint = by(cluster, user, "whoami").env("KUBECTL_MAINT_SHARED_USERS", shared);
            let who = whoami(maint);
            let holder = who["holder"].as_str().expect("a holder");
            assert!(holder.starts_with("al@"), "{user}: {holder}");
            assert_eq!(who["holderSource"], "SharedApiUser", "{user}");
            assert_eq!(who["apiUser"], user);
        }
    });
}

/// Many users can share a login and a machine, such as a bastion host.
#[test]
fn a_lock_of_a_shared_user_belongs_to_nobody_else_on_the_machine() {
    on_one("holder-bastion", |cluster| {
        let node = cluster.node("worker-1");
        let admin = |verb: &str| by(cluster, "kubernetes-admin", &format!("{verb} {node}"));
        let alice = |verb: &str| by(cluster, "holder-alice", &format!("{verb} {node}"));
        for (lock, unlock, attempts) in [
            (
                "acquire -m why",
                "release",
                &[
                    ("renew", 3),
                    ("release", 3),
                    ("hold -m mine", 3),
                    ("acquire --reentry", 3),
                ][..],
            ),
            // Ending another user's hold needs a confirmation, so the exit code is 6.
            (
                "hold -m why",
                "unhold",
                &[("unhold", 6), ("hold -m mine", 3)][..],
            ),
        ] {
            admin(lock).succeeds();
            let before = cluster.lease_of(&node);
            for (verb, code) in attempts {
                let run = alice(verb).run();
                assert_eq!(run.code, *code, "{lock}, {verb}: {run}");
            }
            assert_eq!(cluster.lease_of(&node), before);
            admin(unlock).succeeds();
        }
    });
}

/// A client certificate or an impersonation already names the user.
#[test]
fn costs_no_request_if_the_credentials_tell() {
    on_real("holder-cost", |cluster| {
        let node = cluster.node("worker-1");
        let plane = cluster.plane();
        let kubeconfig = plane
            .user("holder-cost", &["system:masters"])
            .expect("a user");
        let sent = |line: &str| {
            let maint = cluster.maint(line.split_whitespace()).arg(&node).arg("-v6");
            let maint = maint
                .without_env("KUBECTL_MAINT_HOLDER")
                .kubeconfig(&kubeconfig);
            let run = maint.succeeds();
            requests(&run)
                .into_iter()
                .map(ToOwned::to_owned)
                .collect::<Vec<_>>()
        };
        cluster.lease(&node, &serde_json::json!({}));
        assert_eq!(sent("acquire"), ["GET", "GET", "PATCH"]);
        assert_eq!(sent("renew"), ["GET", "PATCH"]);
        assert_eq!(sent("release"), ["GET", "PATCH"]);
        let lease = cluster.lease_of(&node);
        let last = &lease["metadata"]["annotations"]["kubectl-maint.dev/last-holder"];
        assert_eq!(last, "holder-cost");
    });
}

#[test]
fn is_user_at_host_if_nobody_says_who_the_api_user_is() {
    in_memory("holder-unknown", |cluster| {
        let proxy = cluster.proxy_for(Foreign(404), |_, path| path.contains("selfsubjectreviews"));
        let maint = cluster.maint(["whoami"]).kubeconfig(&proxy.kubeconfig);
        let run = maint
            .without_env("KUBECTL_MAINT_HOLDER")
            .env("USER", "al")
            .run();
        let lines: Vec<&str> = run.stdout.lines().collect();
        assert!(lines[0].starts_with("Holder:    al@"), "{run}");
        let from = "From:      the default: your login and host, because your credentials show no API user that can be a holder";
        assert_eq!(lines[1], from, "{run}");
    });
}
