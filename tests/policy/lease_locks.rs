//! The lease policy's rules about holders: both what they refuse and what they admit.

use control_plane::NodeSpec;
use serde_json::{Value, json};

use crate::support::{
    ADMINISTRATORS, HOLDERS, LEASES, Person, USERS, admitted, after, at, denying, person,
    refused_by, wait_until,
};

/// Alice's Lease of this name, as any client may create it, and its path.
fn locked(by: &Person, name: &str, holder: &str) -> (String, Value) {
    let now = at(0);
    let lease = json!({
        "metadata": {"name": name, "annotations": {"kubectl-maint.dev/acquisition": "1-n1"}},
        "spec": {
            "holderIdentity": holder,
            "acquireTime": now,
            "renewTime": now,
            "leaseDurationSeconds": 600,
            "leaseTransitions": 1,
        },
    });
    let lease = admitted(by.post(LEASES, &lease), "a first lock");
    (format!("{LEASES}/{name}"), lease)
}

#[test]
fn a_live_lock_is_neither_replaced_nor_shortened() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("live-lock");
    let uma = person(plane, "uma", &[USERS]);
    let (path, lease) = locked(&uma, "live-lock", "alice");
    let renewed = &lease["spec"]["renewTime"];
    let now = at(0);
    let spec = |spec: Value| json!({ "spec": spec });
    let note = |value: &str| json!({"kubectl-maint.dev/acquisition": value});
    for (what, patch) in [
        ("another holder", spec(json!({"holderIdentity": "bob"}))),
        (
            "another holder with a new count",
            spec(
                json!({"holderIdentity": "bob", "leaseTransitions": 2, "acquireTime": now, "renewTime": now}),
            ),
        ),
        (
            "a new acquisition of the same holder",
            spec(json!({"leaseTransitions": 2})),
        ),
        (
            "another mark",
            json!({"metadata": {"annotations": note("1-n2")}}),
        ),
        (
            "no mark",
            json!({"metadata": {"annotations": {"kubectl-maint.dev/acquisition": null}}}),
        ),
        (
            "no times",
            spec(json!({"renewTime": null, "acquireTime": null})),
        ),
        ("a duration of 1", spec(json!({"leaseDurationSeconds": 1}))),
        ("no duration", spec(json!({"leaseDurationSeconds": null}))),
        (
            "an earlier renewal",
            spec(json!({"renewTime": after(renewed, -1)})),
        ),
        (
            "a later renewal with a shorter duration",
            spec(json!({"renewTime": now, "leaseDurationSeconds": 500})),
        ),
        (
            "somebody else's hold",
            spec(json!({"holderIdentity": "kubeadm:bob", "leaseTransitions": 2})),
        ),
    ] {
        let by = person(plane, "hugo", &[USERS, HOLDERS]);
        refused_by("maint-live-lock", &by.patch(&path, &patch), what);
    }
    let renewal = spec(json!({"renewTime": at(0)}));
    admitted(uma.patch(&path, &renewal), "a renewal");
    let longer = spec(json!({"renewTime": at(0), "leaseDurationSeconds": 900}));
    admitted(uma.patch(&path, &longer), "a longer renewal");
    let others = json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}});
    admitted(uma.patch(&path, &others), "other keys");
}

#[test]
fn a_takeover_names_the_lock_that_it_ends_and_needs_a_right() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("takeover");
    let uma = person(plane, "uma", &[USERS]);
    let hugo = person(plane, "hugo", &[USERS, HOLDERS]);
    let ada = person(plane, "ada", &[ADMINISTRATORS]);
    let (path, lease) = locked(&uma, "takeover", "alice");
    let uid = lease["metadata"]["uid"].as_str().expect("a uid");
    let taken = |breaks: &str| {
        json!({
            "metadata": {"annotations": {
                "kubectl-maint.dev/breaks": breaks,
                "kubectl-maint.dev/acquisition": "2-n2",
            }},
            "spec": {"holderIdentity": "kubeadm:ada", "leaseTransitions": 2},
        })
    };
    let this = format!("{uid}.1.n1");
    for (what, by, breaks) in [
        ("without the right", &hugo, &*this),
        ("another lock", &ada, &format!("{uid}.0.n1")),
        ("another nonce", &ada, &format!("{uid}.1.n2")),
        ("no lock", &ada, ""),
    ] {
        refused_by("maint-live-lock", &by.patch(&path, &taken(breaks)), what);
    }
    admitted(ada.patch(&path, &taken(&this)), "with the right");
    // The words of the last takeover are of no use for the next.
    let again = json!({"spec": {"holderIdentity": "kubeadm:bob", "leaseTransitions": 3}});
    refused_by("maint-live-lock", &ada.patch(&path, &again), "the next");
}

#[test]
fn transitions_stay_or_rise_by_one_or_start_over() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("transitions");
    let uma = person(plane, "uma", &[USERS]);
    let free = |name: &str, transitions: i64| {
        let lease = json!({"metadata": {"name": name}, "spec": {"leaseTransitions": transitions}});
        admitted(uma.post(LEASES, &lease), "a free lease");
        format!("{LEASES}/{name}")
    };
    let to = |transitions: i64| json!({"spec": {"leaseTransitions": transitions}});
    let path = free("transitions", 7);
    for wrong in [0, 6, 9, 2_147_483_647] {
        let answer = uma.patch(&path, &to(wrong));
        refused_by("maint-transitions", &answer, &wrong.to_string());
    }
    admitted(uma.patch(&path, &to(7)), "the same");
    admitted(uma.patch(&path, &to(8)), "the next");
    let path = free("transitions-last", 2_147_483_647);
    refused_by("maint-transitions", &uma.patch(&path, &to(1)), "skips 0");
    admitted(uma.patch(&path, &to(0)), "starts over");
}

#[test]
fn holds_begin_and_end_only_with_a_right() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("hold-right");
    let uma = person(plane, "uma", &[USERS]);
    let hugo = person(plane, "hugo", &[USERS, HOLDERS]);
    let (path, _) = locked(&uma, "hold-right", "hugo");
    let hold = json!({
        "metadata": {"annotations": {"kubectl-maint.dev/acquisition": "2-n2"}},
        "spec": {"holderIdentity": "kubeadm:hugo", "leaseTransitions": 2},
    });
    refused_by("maint-hold-right", &uma.patch(&path, &hold), "a user");
    let created = json!({"metadata": {"name": "hold-made"}, "spec": {"holderIdentity": "kubeadm"}});
    refused_by("maint-hold-right", &uma.post(LEASES, &created), "a user");
    admitted(hugo.patch(&path, &hold), "a holder, of their own lock");
    let reason = json!({"metadata": {"annotations": {"kubectl-maint.dev/reason": "new"}}});
    admitted(uma.patch(&path, &reason), "not the hold itself");
    let end = json!({"spec": {"holderIdentity": ""}});
    refused_by("maint-unhold-right", &uma.patch(&path, &end), "a user");
    let gone = json!({"spec": {"holderIdentity": null}});
    refused_by("maint-unhold-right", &uma.patch(&path, &gone), "a user");
    admitted(hugo.patch(&path, &end), "a holder");
}

#[test]
fn an_expired_lock_is_anyones() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("expired-lock");
    plane
        .create_nodes(&[NodeSpec::ready("expired-lock")])
        .expect("a node");
    let uma = person(plane, "uma", &[USERS]);
    let now = at(0);
    let lease = json!({
        "metadata": {"name": "expired-lock"},
        "spec": {
            "holderIdentity": "alice", "acquireTime": now, "renewTime": now,
            "leaseDurationSeconds": 1, "leaseTransitions": 1,
        },
    });
    admitted(uma.post(LEASES, &lease), "a lock");
    let path = format!("{LEASES}/expired-lock");
    let take = || {
        let now = at(0);
        json!({"spec": {
            "holderIdentity": "bob", "acquireTime": now, "renewTime": now, "leaseTransitions": 2,
        }})
    };
    refused_by("maint-live-lock", &uma.patch(&path, &take()), "live");
    wait_until("the lock expires", || uma.patch(&path, &take()).is_ok());
}

/// Other tools leave such Leases, and a lock that nobody could take would block its node.
#[test]
fn a_lock_without_times_has_ended() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("timeless");
    let uma = person(plane, "uma", &[USERS]);
    let lease = json!({
        "metadata": {"name": "timeless"},
        "spec": {"holderIdentity": "alice", "leaseDurationSeconds": 2_147_483_647},
    });
    admitted(uma.post(LEASES, &lease), "a lease of years");
    let path = format!("{LEASES}/timeless");
    let now = at(0);
    let taken = json!({"spec": {
        "holderIdentity": "bob", "acquireTime": now, "renewTime": now, "leaseTransitions": 1,
        "leaseDurationSeconds": 60,
    }});
    admitted(uma.patch(&path, &taken), "a new holder");
}
