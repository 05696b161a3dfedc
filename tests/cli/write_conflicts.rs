//! Leases that others keep changing.

use http::Method;
use insta::assert_snapshot;
use regex::Regex;
use serde_json::json;

use crate::support::Treatment::{Answer, Keep};
use crate::support::{Cluster, LEASES, holder_of, on_both, on_one};

/// Changes a label of the Lease.
fn stirs(cluster: &Cluster, node: &str, round: usize) {
    let label = json!({"metadata": {"labels": {"example.com/round": round.to_string()}}});
    cluster.patch(&format!("{LEASES}/{node}"), &label);
}

#[test]
fn repeated_conflicts_end_at_the_time_limit() {
    on_one("conflicts-lasts", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        let proxy = cluster.proxy_for(Answer(409, None), |method, _| method != Method::GET);
        let run = cluster
            .maint(["acquire", &node, "--request-timeout=4s"])
            .kubeconfig(&proxy.kubeconfig)
            .run();
        let often = Regex::new(r"\d+ conflicts in \d+s").expect("a pattern");
        let run = run.to_string();
        // Nothing was written, and the message says so.
        assert_snapshot!(often.replace(&run, "[number] conflicts in [length]"), @"
        $ kubectl maint acquire worker-1 --request-timeout=4s
        -- stderr
        still waiting for the API server
        error: node/worker-1 was not acquired: its Lease kept changing ([number] conflicts in [length])
        hint: nothing was changed; run the command again
        -- exit code 1
        ");
        assert_eq!(holder_of(cluster, &node), None);
    });
}

#[test]
fn conflicts_that_stop_end_in_the_acquisition() {
    on_one("conflicts-passes", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        let proxy = cluster.proxy_for_writes(&[Keep; 5]);
        let run = cluster
            .maint(["acquire", &node])
            .kubeconfig(&proxy.kubeconfig)
            .start();
        for round in 1..=5 {
            let kept = proxy.kept();
            stirs(cluster, &node, round);
            assert_eq!(kept.passes(), 409, "round {round}");
        }
        assert_snapshot!(run.ends(), @"
        $ kubectl maint acquire worker-1
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1
          kubectl maint renew worker-1
          kubectl maint hold worker-1 -m WHY
        -- exit code 0
        ");
        assert_eq!(cluster.lease_of(&node)["spec"]["leaseTransitions"], 1);
    });
}

#[test]
fn conflicts_that_another_client_wins_end_in_a_refusal() {
    on_both("conflicts-lost", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        let proxy = cluster.proxy_for_writes(&[Keep; 2]);
        let (run, kept) = proxy.holds_up(cluster.maint(["acquire", &node]));
        stirs(cluster, &node, 1);
        assert_eq!(kept.passes(), 409);
        let kept = proxy.kept();
        cluster
            .maint(["acquire", &node])
            .holder("bob@laptop")
            .succeeds();
        assert_eq!(kept.passes(), 409);
        assert_snapshot!(run.ends(), @"
        $ kubectl maint acquire worker-1
        -- stderr
        error: cannot acquire node/worker-1: locked by bob@laptop (since [time], until [time], [length] left)
        hint: wait for it with `kubectl maint acquire worker-1 --wait`
        -- exit code 3
        ");
    });
}
