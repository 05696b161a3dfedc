//! The output of a deletion that fails or is refused, also as JSON.

use http::Method;
use serde_json::{Value, json};

use crate::fixture::{Fixture, fixture};
use crate::races::at_the_second;
use crate::support::{Proxy, Run, Treatment};

fn data(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run}"))
}

/// A proxy that applies `treatment` to the acquisition of a lock.
fn locking(fixture: &Fixture, treatment: Treatment) -> Proxy {
    fixture
        .cluster
        .proxy_for(treatment, |method, _| *method == Method::PATCH)
}

/// Force-deletes `web-1` with these arguments, through the proxy.
fn deleting(fixture: &Fixture, proxy: &Proxy, words: &[&str]) -> Run {
    let maint = fixture.force_delete("web-1", &["-m", "why"]);
    maint.args(words).kubeconfig(&proxy.kubeconfig).run()
}

#[test]
fn a_lock_that_somebody_takes_meanwhile_is_an_error_for_programs() {
    fixture("taken-json", |fixture| {
        fixture.harmless_pod("web-1");
        fixture.cluster.released(&fixture.node);
        let proxy = locking(fixture, Treatment::Keep);
        let words = ["--accept-risk=none", "-m", "why", "-o", "json"];
        let (run, kept) = proxy.holds_up(fixture.force_delete("web-1", &words));
        let acquire = fixture.cluster.maint(["acquire", &fixture.node]);
        acquire.holder("bob@laptop").succeeds();
        assert_eq!(kept.passes(), 409);
        let run = run.ends();
        assert_eq!(run.code, 6, "{run}");
        let error = &data(&run)["items"][0]["error"];
        assert_eq!(error["code"], "Locked", "{run}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains("is locked by bob@laptop"), "{run}");
    });
}

/// The codes: 403 for a missing right, 422 for a policy without a reason, 400 for a webhook without a code.
#[test]
fn a_refused_lock_is_the_risk_unread_whatever_its_code() {
    fixture("refused-lock", |fixture| {
        fixture.cluster.released(&fixture.node);
        for code in [400, 403, 422] {
            fixture.harmless_pod("web-1");
            let proxy = locking(fixture, Treatment::Refuse(code, "not on Fridays"));
            let run = deleting(fixture, &proxy, &["--accept-risk=none", "-o", "json"]);
            assert_eq!(run.code, 6, "{run}");
            let list = data(&run);
            assert_eq!(list["acceptRisk"], "--accept-risk=unread", "{run}");
            let error = &list["items"][0]["error"];
            assert_eq!(error["code"], "NotConfirmed", "{run}");
            assert!(
                run.stderr.contains("not on Fridays; nothing was deleted"),
                "{run}"
            );
            assert!(fixture.is_there("web-1"));

            let run = deleting(fixture, &proxy, &["--accept-risk=unread"]);
            let line = "is not locked during the deletion: ";
            assert!(run.stderr.contains(line), "{run}");
            assert!(!fixture.is_there("web-1"), "{run}");
            let path = fixture.at("/apis/apps/v1", "replicasets/web-1");
            fixture.cluster.delete(&path);
        }
    });
}

#[test]
fn a_lock_without_an_answer_says_that_nothing_was_deleted() {
    fixture("unknown-lock", |fixture| {
        fixture.harmless_pod("web-1");
        fixture.cluster.released(&fixture.node);
        let proxy = locking(fixture, Treatment::Answer(500, None));
        let words = [
            "--accept-risk=none,unread",
            "-o",
            "json",
            "--request-timeout=3s",
        ];
        let run = deleting(fixture, &proxy, &words);
        assert_eq!(run.code, 1, "{run}");
        let error = &data(&run)["items"][0]["error"];
        assert_eq!(error["code"], "Unknown", "{run}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.ends_with("; nothing was deleted"), "{run}");
        assert!(run.stderr.contains(message), "{run}");
        assert!(fixture.is_there("web-1"));
    });
}

#[test]
fn each_pod_has_an_outcome_or_an_error_after_one_that_disappeared() {
    fixture("went-json", |fixture| {
        let (_proxy, run, kept) = at_the_second(fixture, &["--accept-risk=none", "-o", "json"]);
        let now = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
        for pod in ["web-2", "web-3"] {
            let path = fixture.pod_path(pod);
            let gone = fixture.cluster.try_send("DELETE", &path, Some(&now));
            gone.expect("it goes");
        }
        fixture.make_pod("web-2", &json!({}));
        assert_eq!(kept.passes(), 409);
        let run = run.ends();
        assert_eq!(run.code, 6, "{run}");
        let items = &data(&run)["items"];
        assert_eq!(items[1]["error"]["code"], "Unsafe", "{run}");
        assert_eq!(items[2]["outcome"], "WasGone", "{run}");
    });
}

#[test]
fn each_pod_has_an_outcome_or_an_error_after_a_refusal() {
    fixture("refused-json", |fixture| {
        for name in ["web-1", "web-2"] {
            fixture.harmless_pod(name);
        }
        let refuse = Treatment::Refuse(403, "not on Fridays");
        let proxy = fixture
            .cluster
            .proxy_for(refuse, |method, _| *method == Method::DELETE);
        let run = deleting(
            fixture,
            &proxy,
            &["pod/web-2", "--accept-risk=none", "-o", "json"],
        );
        assert_eq!(run.code, 1, "{run}");
        let items = &data(&run)["items"];
        assert_eq!(items[0]["error"]["code"], "Forbidden", "{run}");
        assert_eq!(items[1]["error"]["code"], "OtherFailed", "{run}");
    });
}

/// A webhook chooses the code, so 404 and 409 say nothing about the object.
#[test]
fn a_refusal_by_a_webhook_is_one_whatever_its_code() {
    fixture("webhook", |fixture| {
        fixture.harmless_pod("web-1");
        let refusal = "admission webhook \"guard.example.com\" denied the request: not on Fridays";
        for code in [404, 409] {
            let refuse = Treatment::Refuse(code, refusal);
            let proxy = fixture
                .cluster
                .proxy_for(refuse, |method, _| *method == Method::DELETE);
            let run = deleting(fixture, &proxy, &["--accept-risk=none", "-o", "json"]);
            assert_eq!(run.code, 1, "{run}");
            assert!(run.stderr.ends_with(&format!("): {refusal}\n")), "{run}");
            let error = &data(&run)["items"][0]["error"];
            assert_eq!(error["code"], "RefusedByPolicy", "{run}");
            assert!(fixture.is_there("web-1"));
        }
    });
}
