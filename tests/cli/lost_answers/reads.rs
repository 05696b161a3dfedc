//! Reads are retried if the answer never comes, or if the server is too busy.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use insta::assert_snapshot;

use crate::support::Treatment::{Answer, LoseAnswer, Pass};
use crate::support::{Cluster, Proxy, Treatment, on_one};

/// A proxy that applies these treatments to the first requests, one each, and forwards all others.
fn proxy_for_first(cluster: &Cluster, treatments: &[Treatment]) -> Proxy {
    let treatments = Mutex::new(Vec::from(treatments).into_iter());
    cluster.proxy(move |_, _| {
        let mut treatments = treatments.lock().expect("no treatment panics");
        treatments.next().unwrap_or(Pass)
    })
}

#[test]
fn a_read_is_retried_without_a_message() {
    on_one("reads-again", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["acquire", &node]).succeeds();
        for treatments in [
            &[LoseAnswer, LoseAnswer][..],
            &[Answer(429, Some(1))],
            &[LoseAnswer, Answer(503, Some(1)), Answer(429, None)],
        ] {
            let proxy = proxy_for_first(cluster, treatments);
            let renew = cluster.maint(["renew", &node]);
            assert_snapshot!(renew.kubeconfig(&proxy.kubeconfig).run(), @"
            $ kubectl maint renew worker-1
            node/worker-1 renewed by alice@bastion until [time] (30m)
            -- exit code 0
            ");
        }
    });
}

#[test]
fn a_read_that_gets_no_answer_fails_in_the_end() {
    on_one("reads-in-vain", |cluster| {
        let node = cluster.name("worker-1");
        let sent = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&sent);
        let proxy = cluster.proxy(move |_, _| {
            count.fetch_add(1, Ordering::Relaxed);
            LoseAnswer
        });
        let run = cluster
            .maint(["renew", &node])
            .kubeconfig(&proxy.kubeconfig)
            .run();
        // The rest of the message differs between TLS and plain HTTP.
        let expected = "Unable to connect to the server: ";
        assert!(run.stderr.starts_with(expected), "{run}");
        assert_eq!((run.code, run.stderr.lines().count()), (1, 1), "{run}");
        // The first request, and five retries.
        assert_eq!(sent.load(Ordering::Relaxed), 6);
    });
}

#[test]
fn an_interrupt_ends_the_wait_for_a_busy_server() {
    on_one("reads-interrupted", |cluster| {
        let node = cluster.name("worker-1");
        let (seen, sees) = std::sync::mpsc::channel();
        let proxy = cluster.proxy(move |_, _| {
            let _ = seen.send(());
            Answer(429, Some(60))
        });
        let renew = cluster.maint(["renew", &node, "--request-timeout=1h"]);
        let run = renew.kubeconfig(&proxy.kubeconfig).start();
        sees.recv().expect("a request");
        run.interrupt();
        assert_snapshot!(run.ends(), @"
        $ kubectl maint renew worker-1 --request-timeout=1h
        -- stderr
        error: interrupted
        nothing was renewed
        -- exit code 130
        ");
    });
}
