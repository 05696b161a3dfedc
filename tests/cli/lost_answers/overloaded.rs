//! Overloaded servers: the command reports them within its time limit.

use std::slice;

use http::Method;
use insta::assert_snapshot;

use crate::support::Treatment::Answer;
use crate::support::{Cluster, Proxy, Running, Treatment, on_one};

/// Starts a run through a proxy, with a time limit of 4 s for each answer, and so of 12 s for the
/// command.
fn acquire(proxy: &Proxy, cluster: &Cluster, nodes: &[String]) -> Running {
    cluster
        .maint(["acquire", "--request-timeout=4s"])
        .args(nodes)
        .kubeconfig(&proxy.kubeconfig)
        .start()
}

fn on_writes(cluster: &Cluster, treatment: Treatment) -> Proxy {
    cluster.proxy_for(treatment, |method, _| method != Method::GET)
}

#[test]
fn reads_are_throttled() {
    on_one("busy-reads", |cluster| {
        let proxy = cluster.proxy(|_, _| Answer(429, Some(1)));
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.name(short));
        let [one, both] = [&nodes[..1], &nodes[..]].map(|nodes| acquire(&proxy, cluster, nodes));
        // No write was sent, so the message mentions no write that may still take effect.
        assert_snapshot!(one.ends(), @"
        $ kubectl maint acquire --request-timeout=4s worker-1
        -- stderr
        Error from server or proxy (TooManyRequests): the proxy says so (it asks to wait 1s)
        -- exit code 1
        ");
        assert_eq!(both.ends().code, 1);
    });
}

#[test]
fn writes_are_throttled() {
    on_one("busy-writes", |cluster| {
        let node = cluster.node("worker-1");
        // The write is retried after the 1 s that the server asks for, until the time limit.
        let proxy = on_writes(cluster, Answer(429, Some(1)));
        assert_snapshot!(acquire(&proxy, cluster, slice::from_ref(&node)).ends(), @"
        $ kubectl maint acquire --request-timeout=4s worker-1
        -- stderr
        still waiting for the API server
        Error from server or proxy (TooManyRequests): the proxy says so (it asks to wait 1s)
        -- exit code 1
        ");
        // The server asks for 60 s, which is more than the time limit, so the command fails at
        // once.
        let proxy = on_writes(cluster, Answer(429, Some(60)));
        assert_snapshot!(acquire(&proxy, cluster, slice::from_ref(&node)).ends(), @"
        $ kubectl maint acquire --request-timeout=4s worker-1
        -- stderr
        Error from server or proxy (TooManyRequests): the proxy says so (it asks to wait 60s)
        -- exit code 1
        ");
        // A single 429 is retried without a message.
        let proxy = cluster.proxy_for_writes(&[Answer(429, Some(1))]);
        assert_snapshot!(acquire(&proxy, cluster, slice::from_ref(&node)).ends(), @"
        $ kubectl maint acquire --request-timeout=4s worker-1
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        lease/worker-1 created
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1
          kubectl maint renew worker-1
          kubectl maint hold worker-1 -m WHY
        -- exit code 0
        ");
    });
}

#[test]
fn the_server_is_unavailable() {
    on_one("busy-ill", |cluster| {
        let node = cluster.node("worker-1");
        let writes = on_writes(cluster, Answer(503, Some(1)));
        let all = cluster.proxy(|_, _| Answer(503, None));
        let [written, read] =
            [&writes, &all].map(|proxy| acquire(proxy, cluster, slice::from_ref(&node)));
        // The server may have stored the write nevertheless.
        assert_snapshot!(written.ends(), @"
        $ kubectl maint acquire --request-timeout=4s worker-1
        -- stderr
        still waiting for the API server
        error: unknown whether node/worker-1 was acquired: the write may still take effect (Error from server or proxy (ServiceUnavailable): the proxy says so (it asks to wait 1s))
        hint: check with `kubectl maint status worker-1`
        -- exit code 1
        ");
        // No write was sent, so the server can't have stored it.
        assert_snapshot!(read.ends(), @"
        $ kubectl maint acquire --request-timeout=4s worker-1
        -- stderr
        Error from server or proxy (ServiceUnavailable): the proxy says so
        -- exit code 1
        ");
        // A single 503 is retried without a message.
        let proxy = cluster.proxy_for_writes(&[Answer(503, None)]);
        assert_snapshot!(acquire(&proxy, cluster, slice::from_ref(&node)).ends(), @"
        $ kubectl maint acquire --request-timeout=4s worker-1
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        lease/worker-1 created
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1
          kubectl maint renew worker-1
          kubectl maint hold worker-1 -m WHY
        -- exit code 0
        ");
    });
}

#[test]
fn a_command_that_gets_no_answer_for_long_says_so_once() {
    on_one("overloaded-slow", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        cluster.maint(["acquire"]).args(&nodes).succeeds();
        let proxy = on_writes(cluster, Answer(503, Some(1)));
        let line = "still waiting for the API server\n";
        let runs = ["release", "renew", "acquire"].map(|verb| {
            [&["--reentry"][..], &["--reentry", "-q"]].map(|flags| {
                let flags = &flags[usize::from(verb != "acquire")..];
                let maint = cluster.maint([verb, "--request-timeout=4s"]);
                let maint = maint.args(&nodes).args(flags);
                maint.kubeconfig(&proxy.kubeconfig).start()
            })
        });
        for [run, quiet] in runs {
            let (run, quiet) = (run.ends(), quiet.ends());
            assert!(run.stderr.starts_with(line), "{run}");
            assert_eq!(run.stderr.matches(line).count(), 1, "{run}");
            assert!(!quiet.stderr.contains(line), "{quiet}");
        }
    });
}
