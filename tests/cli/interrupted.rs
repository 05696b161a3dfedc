//! Ctrl-C and other signals while a command waits for an answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use control_plane::Authority;
use http::Method;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::json;

use crate::support::Treatment::{Keep, Pass};
use crate::support::{Cluster, holder_of, in_memory, on_both, on_one, unless_stalled};

#[test]
fn while_a_read_hangs() {
    on_one("ctrl-read", |cluster| {
        let node = cluster.node("worker-1");
        let proxy = cluster.proxy_for(Keep, |_, path| path.contains("/leases/"));
        let (run, _kept) = proxy.holds_up(cluster.maint(["acquire", &node]));
        run.interrupt();
        // No write was sent, so nothing can still take effect.
        assert_snapshot!(run.ends(), @"
        $ kubectl maint acquire worker-1
        -- stderr
        error: interrupted
        -- exit code 130
        ");
    });
}

/// Only the API server knows the user of a token, and it does not answer.
#[test]
fn while_the_api_user_is_asked_for() {
    in_memory("ctrl-user", |cluster| {
        let node = cluster.node("worker-1");
        let authority = Authority::new("proxy").expect("an authority");
        let identity = authority.server(&["127.0.0.1"]).expect("a certificate");
        let proxy = cluster.proxy_as(Some(&identity), |_, path| {
            match path.contains("selfsubjectreviews") {
                true => Keep,
                false => Pass,
            }
        });
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": {
                "server": format!("https://{}", proxy.address),
                "insecure-skip-tls-verify": true,
            }}],
            "users": [{"name": "test", "user": {"token": "opaque"}}],
        });
        std::fs::write(&proxy.kubeconfig, config.to_string()).expect("a kubeconfig");
        for line in [
            "acquire NODE",
            "hold NODE -m why",
            "with NODE -- true",
            "fence NODE --powered-off=unplugged",
            "force-delete pod/web-1 -m why --accept-risk=none",
        ] {
            let mut words: Vec<_> = line
                .split(' ')
                .map(|word| word.replace("NODE", &node))
                .collect();
            words.insert(1, "--request-timeout=0".to_owned());
            let (run, _kept) = proxy.holds_up(cluster.maint(&words));
            run.is_sent(Signal::TERM);
            let run = run.ends();
            assert_eq!(run.code, 130, "{run}");
            assert_eq!(run.stderr, "error: interrupted\n", "{run}");
        }
    });
}

/// The lock is released, or left to expire if the API server does not answer that either.
#[test]
fn while_the_node_of_a_command_is_labeled() {
    on_one("ctrl-label", |cluster| {
        let node = cluster.node("worker-1");
        cluster.released(&node);
        for release_hangs in [false, true] {
            let is_labeled = AtomicBool::new(false);
            let proxy = cluster.proxy_for(Keep, move |method, path| {
                let is_label = *method == Method::PATCH && path.contains("/nodes/");
                is_labeled.fetch_or(is_label, Ordering::Relaxed);
                is_label || (release_hangs && is_labeled.load(Ordering::Relaxed))
            });
            let with = [
                "with",
                &node,
                "--opt-outs=none",
                "--request-timeout=9m",
                "--lease-duration=1h",
            ];
            let (run, _kept) = proxy.holds_up(cluster.maint(with).args(["--", "true"]));
            run.interrupt();
            let run = run.ends();
            assert_eq!(run.code, 130, "{run}");
            assert_eq!(holder_of(cluster, &node).is_some(), release_hangs, "{run}");
        }
    });
}

#[test]
fn while_a_list_hangs() {
    on_both("ctrl-list", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        let proxy = cluster.proxy(|_, _| Keep);
        let (run, _kept) = proxy.holds_up(cluster.maint(["acquire"]).args(&nodes));
        run.interrupt();
        // No write was sent, so nothing can still take effect.
        assert_eq!(run.ends().code, 130);
    });
}

#[test]
fn while_a_write_hangs() {
    on_one("ctrl-write", |cluster| {
        let node = cluster.node("worker-1");
        cluster.released(&node);
        let proxy = cluster.proxy_for_writes(&[Keep]);
        let (run, kept) = proxy.holds_up(cluster.maint(["acquire", &node]));
        run.interrupt();
        // The write may still take effect.
        assert_snapshot!(run.ends(), @"
        $ kubectl maint acquire worker-1
        -- stderr
        error: interrupted: the write for node/worker-1 was in progress and may still take effect
        hint: check with `kubectl maint status worker-1`
        -- exit code 130
        ");
        // The write takes effect later.
        assert_eq!(kept.passes(), 200);
        assert_eq!(
            cluster.lease_of(&node)["spec"]["holderIdentity"],
            "alice@bastion"
        );
    });
}

#[test]
fn while_a_write_lands() {
    on_both("ctrl-lands", |cluster| {
        let node = cluster.node("worker-1");
        cluster.released(&node);
        let proxy = cluster.proxy_for_writes(&[Keep]);
        let (run, kept) = proxy.holds_up(cluster.maint(["acquire", &node]));
        run.interrupt();
        assert_eq!(kept.passes(), 200);
        let run = run.ends();
        let holder = cluster.lease_of(&node)["spec"]["holderIdentity"].clone();
        // The interrupt or the answer may come first. Either way the output must match the lock:
        // released, or held.
        match run.code {
            130 => assert_eq!((holder, run.stdout.as_str()), ("".into(), ""), "{run}"),
            code => {
                assert_eq!((holder, code), ("alice@bastion".into(), 0), "{run}");
                assert!(run.stdout.contains(" acquired by alice@bastion"), "{run}");
            }
        }
    });
}

#[test]
fn while_the_held_label_is_written() {
    on_one("ctrl-label", |cluster| {
        let node = cluster.node("worker-1");
        let proxy = cluster.proxy_for(Keep, |method, path| {
            method == Method::PATCH && path.contains("/nodes/")
        });
        let (run, _kept) = proxy.holds_up(cluster.maint(["hold", &node, "-m", "disk"]));
        run.interrupt();
        let run = run.ends();
        assert_eq!(run.code, 130, "{run}");
        assert!(run.stdout.contains("worker-1 on hold"), "{run}");
        let error = "error: interrupted after the result was printed, which counts: an Event, the held label or a cordon may be missing or left\nhint: check with `kubectl maint doctor`\n";
        assert!(run.stderr.ends_with(error), "{run}");
        assert_eq!(
            cluster.lease_of(&node)["spec"]["holderIdentity"],
            "kubeadm:alice@bastion"
        );
    });
}

/// The lock id was not printed, so the lock is released.
#[test]
fn while_the_node_is_cordoned_before_the_data_is_printed() {
    on_both("ctrl-cordon", |cluster| {
        let node = cluster.node("worker-1");
        // One proxy for each command: the first command sends a second write, which its proxy keeps
        // as well.
        let proxies = [(), ()].map(|()| {
            cluster.proxy_for(Keep, |method, path| {
                method == Method::PATCH && path.contains("/nodes/")
            })
        });
        let acquire = |format| cluster.maint(["acquire", &node, "--cordon", "-o", format]);
        let (run, _kept) = proxies[0].holds_up(acquire("lock-id"));
        run.interrupt();
        assert_snapshot!(run.ends(), @"
        $ kubectl maint acquire worker-1 --cordon -o lock-id
        -- stderr
        Warning: could not remove the held label, the opt-outs and the cordon from node/worker-1, if the lock set them: the API server did not answer in 2s
        hint: to remove what is left: `kubectl maint doctor --fix`
        error: interrupted
        lease/worker-1 created
        nothing was locked
        -- exit code 130
        ");
        assert_eq!(cluster.lease_of(&node)["spec"]["holderIdentity"], "");
        let (run, kept) = proxies[1].holds_up(acquire("json"));
        run.interrupt();
        assert_eq!(kept.passes(), 200);
        let run = run.ends();
        let holder = cluster.lease_of(&node)["spec"]["holderIdentity"].clone();
        let data: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
        let item = &data["items"][0];
        // The interrupt or the answer may come first. Either way the output must match the lock.
        if run.code == 0 {
            let found = (&holder, &item["state"]);
            assert_eq!(found, (&"alice@bastion".into(), &"Locked".into()), "{run}");
            return;
        }
        assert_eq!((run.code, holder), (130, "".into()), "{run}");
        assert_eq!(item["error"]["code"], "Interrupted", "{run}");
        // If the write took effect after that, a warning has said so.
        let node = cluster.get(&format!("/api/v1/nodes/{node}"));
        let is_clear = node["metadata"]["labels"]["kubectl-maint.dev/held"].is_null();
        assert!(
            is_clear || run.stderr.contains("could not remove the held label"),
            "{run}"
        );
    });
}

#[test]
fn while_a_node_that_was_taken_over_is_labeled_before_the_data_is_printed() {
    on_one("ctrl-taken-data", |cluster| {
        let node = cluster.node("worker-1");
        let bob = cluster.maint(["acquire", &node]).holder("bob@laptop");
        bob.succeeds();
        let proxy = cluster.proxy_for(Keep, |method, path| {
            method == Method::PATCH && path.contains("/nodes/")
        });
        let hold = ["hold", &node, "-m", "rack", "--take-over", "--yes"];
        let (run, _kept) = proxy.holds_up(cluster.maint(hold).args(["-o", "name"]));
        run.interrupt();
        let run = run.ends();
        assert_eq!(run.code, 130, "{run}");
        let says =
            format!("Warning: node/{node} stays on hold, because the hold replaced another lock\n");
        assert!(run.stderr.contains(&says), "{run}");
        assert_eq!(
            cluster.lease_of(&node)["spec"]["holderIdentity"],
            "kubeadm:alice@bastion"
        );
    });
}

#[test]
fn while_a_release_hangs() {
    on_one("ctrl-release", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["acquire", &node]).succeeds();
        let proxy = cluster.proxy_for_writes(&[Keep]);
        let (run, _kept) = proxy.holds_up(cluster.maint(["release", &node]));
        run.interrupt();
        // The release may still take effect.
        let run = run.ends();
        assert_eq!(run.code, 130, "{run}");
        assert!(run.stderr.contains("may still take effect"), "{run}");
    });
}

#[test]
fn while_the_second_of_two_hangs() {
    for (prefix, signal) in [
        ("ctrl-second", Signal::INT),
        ("term-second", Signal::TERM),
        ("hup-second", Signal::HUP),
        ("quit-second", Signal::QUIT),
    ] {
        on_one(prefix, |cluster| {
            let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
            for node in &nodes {
                cluster.released(node);
            }
            let proxy = cluster.proxy_for(Keep, |method, path| {
                method == Method::PATCH && path.contains("worker-2")
            });
            let interrupted = || {
                cluster.maint(["release", &nodes[0]]).run();
                let (run, _kept) = proxy.holds_up(cluster.maint(["acquire"]).args(&nodes));
                wait_for_holder(cluster, &nodes[0], "alice@bastion");
                run.is_sent(signal);
                run.ends()
            };
            // The first lock is released. The write for the second node may still take effect.
            assert_snapshot!(unless_stalled(interrupted), @"
            $ kubectl maint acquire worker-1 worker-2
            -- stderr
            error: interrupted: the write for node/worker-2 was in progress and may still take effect
            hint: check with `kubectl maint status worker-2`
            not acquired: worker-1; unknown: worker-2
            -- exit code 130
            ");
            assert_eq!(cluster.lease_of(&nodes[0])["spec"]["holderIdentity"], "");
        });
    }
}

#[test]
fn while_the_second_of_two_holds_hangs() {
    for (prefix, signal) in [("ctrl-hold", Signal::INT), ("term-hold", Signal::TERM)] {
        on_one(prefix, |cluster| {
            let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
            for node in &nodes {
                cluster.released(node);
            }
            let proxy = cluster.proxy_for(Keep, |method, path| {
                method == Method::PATCH && path.contains("/leases/") && path.contains("worker-2")
            });
            let interrupted = || {
                cluster.maint(["release", &nodes[0]]).run();
                let hold = cluster.maint(["hold"]).args(&nodes).args(["-m", "rack"]);
                let (run, _kept) = proxy.holds_up(hold);
                wait_for_holder(cluster, &nodes[0], "kubeadm:alice@bastion");
                run.is_sent(signal);
                run.ends()
            };
            // The first hold is ended. The write for the second node may still take effect.
            assert_snapshot!(unless_stalled(interrupted), @"
            $ kubectl maint hold worker-1 worker-2 -m rack
            -- stderr
            error: interrupted: the write for node/worker-2 was in progress and may still take effect
            hint: check with `kubectl maint status worker-2`
            not put on hold: worker-1; unknown: worker-2
            -- exit code 130
            ");
            assert_eq!(cluster.lease_of(&nodes[0])["spec"]["holderIdentity"], "");
        });
    }
}

/// The earlier holder may still be working on the node.
#[test]
fn what_was_taken_over_before_an_interrupt_stays_on_hold() {
    on_one("ctrl-taken", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        cluster.released(&nodes[1]);
        let bob = cluster.maint(["acquire", &nodes[0]]).holder("bob@laptop");
        bob.succeeds();
        let proxy = cluster.proxy_for(Keep, |method, path| {
            method == Method::PATCH && path.contains("/leases/") && path.contains("worker-2")
        });
        let hold = cluster.maint(["hold"]).args(&nodes);
        let hold = hold.args(["-m", "rack", "--take-over", "--yes"]);
        let (run, _kept) = proxy.holds_up(hold);
        wait_for_holder(cluster, &nodes[0], "kubeadm:alice@bastion");
        run.interrupt();
        assert_snapshot!(run.ends(), @"
        $ kubectl maint hold worker-1 worker-2 -m rack --take-over --yes
        node/worker-1 on hold by alice@bastion, taken over from bob@laptop
        -- stderr
        Warning: bob@laptop may still act on node/worker-1 until [time] at the latest
        error: interrupted: the write for node/worker-2 was in progress and may still take effect
        hint: check with `kubectl maint status worker-2`
        A hold does not expire, and `kubectl drain` still evicts pods. To end it:
          kubectl maint unhold worker-1
        1 of 2 nodes on hold; unknown: worker-2
        -- exit code 130
        ");
        assert_eq!(
            cluster.lease_of(&nodes[0])["spec"]["holderIdentity"],
            "kubeadm:alice@bastion"
        );
    });
}

/// Waits until this holder has the lock of `node`: several writes are in progress, and the proxy
/// keeps only one.
fn wait_for_holder(cluster: &Cluster, node: &str, holder: &str) {
    while cluster.lease_of(node)["spec"]["holderIdentity"] != holder {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_hangup_is_ignored_if_requested() {
    on_one("hup-ignored", |cluster| {
        let node = cluster.node("worker-1");
        let proxy = cluster.proxy_for_writes(&[Keep]);
        let acquire = cluster.maint(["acquire", &node]);
        let (run, kept) = proxy.holds_up(acquire.ignoring("HUP"));
        run.is_sent(Signal::HUP);
        assert_eq!(kept.passes(), 201);
        assert_eq!(run.ends().code, 0);
    });
}

#[test]
fn signals_ignored_from_the_start_interrupt_nothing() {
    on_one("ctrl-ignored", |cluster| {
        let node = cluster.node("worker-1");
        for signal in [Signal::INT, Signal::TERM] {
            let bob = |verb: &str| cluster.maint([verb, &*node]).holder("bob@laptop");
            bob("acquire").succeeds();
            let run = cluster
                .maint(["acquire", &node, "--wait"])
                .ignoring("INT TERM")
                .until_it_says("waiting for node/");
            run.is_sent(signal);
            bob("release").succeeds();
            let run = run.ends();
            assert_eq!(run.code, 0, "{run}");
            cluster.maint(["release", &node]).succeeds();
        }
    });
}
