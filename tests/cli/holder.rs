//! The default holder: the API user, unless that user is shared or unknown.

use crate::support::Treatment::{As, Foreign};
use crate::support::{Cluster, Maint, holder_of, in_memory, on_both, on_one, on_real, requests};

/// Runs a command as this API user, without a configured holder.
fn by(cluster: &Cluster, user: &str, line: &str) -> Maint {
    let maint = cluster.maint(line.split_whitespace());
    let maint = maint.without_env("KUBECTL_MAINT_HOLDER").env("USER", "al");
    maint.args(["--as", user, "--as-group", "system:masters"])
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
        let node = cluster.node("worker-1");
        let proxy = cluster.proxy_for(Foreign(404), |_, path| path.contains("selfsubjectreviews"));
        let acquire = cluster.maint(["acquire", &node]).env("USER", "al");
        let acquire = acquire.without_env("KUBECTL_MAINT_HOLDER");
        acquire.kubeconfig(&proxy.kubeconfig).succeeds();
        let holder = holder_of(cluster, &node).expect("a holder");
        assert!(holder.starts_with("al@"), "{holder}");
    });
}

/// `kubectl proxy` serves plain HTTP and adds the credentials of the user who started it.
#[test]
fn is_user_at_host_behind_kubectl_proxy() {
    in_memory("holder-proxy", |cluster| {
        let node = cluster.node("worker-1");
        let proxy = cluster.proxy(|_, _| As("alice"));
        let by_default = |line: &[&str]| {
            let maint = cluster.maint(line).kubeconfig(&proxy.kubeconfig);
            maint.env("USER", "al").without_env("KUBECTL_MAINT_HOLDER")
        };
        by_default(&["acquire", &node]).succeeds();
        let holder = holder_of(cluster, &node).expect("a holder");
        assert!(holder.starts_with("al@"), "{holder}");
        let doctor = by_default(&["doctor"]).run();
        let shown = format!("API user alice; holder of your locks: {holder}");
        assert!(doctor.stdout.contains(&shown), "{doctor}");
    });
}
