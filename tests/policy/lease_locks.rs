//! The lease policy's rules about holders: both what they refuse and what they admit.

use control_plane::NodeSpec;
use serde_json::{Value, json};

use crate::support::{
    ADMINISTRATORS, HOLDERS, LEASES, NODES, Person, USERS, admitted, after, at, denying, person,
    refused_by, wait_until,
};

/// The path and content of a new Lease that alice has locked, as any client may create it.
fn locked(by: &Person, name: &str, holder: &str) -> (String, Value) {
    let now = at(0);
    let mut notes = by.signature(1);
    notes["kubectl-maint.dev/acquisition"] = json!("1-n1");
    let lease = json!({
        "metadata": {"name": name, "annotations": notes},
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

/// The server ignores a message with a line break.
#[test]
fn a_holder_of_two_lines_keeps_the_code() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("lock-lines");
    let uma = person(plane, "uma", &[USERS]);
    let (path, _) = locked(&uma, "lock-lines", "alice\nat the rack");
    let answer = uma.patch(&path, &json!({"spec": {"holderIdentity": "bob"}}));
    refused_by("maint-live-lock", &answer, "two lines");
    let message = answer.expect_err("refused").message;
    assert!(
        message.contains("locked by alice at the rack ("),
        "{message}"
    );
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
    let taken = |by: &Person, breaks: &str| {
        let spec = json!({"holderIdentity": "kubeadm:ada", "leaseTransitions": 2});
        let mut patch = by.signed(2, &spec);
        let notes = &mut patch["metadata"]["annotations"];
        notes["kubectl-maint.dev/breaks"] = json!(breaks);
        notes["kubectl-maint.dev/acquisition"] = json!("2-n2");
        patch
    };
    let this = format!("{uid}.1.n1");
    for (what, by, breaks) in [
        ("without the right", &hugo, &*this),
        ("another lock", &ada, &format!("{uid}.0.n1")),
        ("another nonce", &ada, &format!("{uid}.1.n2")),
        ("no lock", &ada, ""),
    ] {
        let answer = by.patch(&path, &taken(by, breaks));
        refused_by("maint-live-lock", &answer, what);
    }
    admitted(ada.patch(&path, &taken(&ada, &this)), "with the right");
    // The annotation of the last takeover does not permit another one.
    let again = ada.signed(
        3,
        &json!({"holderIdentity": "kubeadm:bob", "leaseTransitions": 3}),
    );
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
    let (path, _) = locked(&hugo, "hold-right", "hugo");
    let spec = json!({"holderIdentity": "kubeadm:hugo", "leaseTransitions": 2});
    let mut hold = hugo.signed(2, &spec);
    hold["metadata"]["annotations"]["kubectl-maint.dev/acquisition"] = json!("2-n2");
    refused_by("maint-hold-right", &uma.patch(&path, &hold), "a user");
    let created = json!({"metadata": {"name": "hold-made"}, "spec": {"holderIdentity": "kubeadm"}});
    refused_by("maint-hold-right", &uma.post(LEASES, &created), "a user");
    admitted(hugo.patch(&path, &hold), "a holder, of their own lock");
    let reason = json!({"metadata": {"annotations": {"kubectl-maint.dev/reason": "new"}}});
    refused_by("maint-live-lock", &uma.patch(&path, &reason), "its reason");
    admitted(hugo.patch(&path, &reason), "its own user");
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
    let ada = person(plane, "ada", &[ADMINISTRATORS]);
    let now = at(0);
    let lease = json!({
        "metadata": {"name": "expired-lock", "annotations": ada.signature(1)},
        "spec": {
            "holderIdentity": "alice", "acquireTime": now, "renewTime": now,
            "leaseDurationSeconds": 1, "leaseTransitions": 1,
        },
    });
    admitted(ada.post(LEASES, &lease), "a lock");
    let path = format!("{LEASES}/expired-lock");
    let take = || {
        let now = at(0);
        let spec = json!({
            "holderIdentity": "bob", "acquireTime": now, "renewTime": now, "leaseTransitions": 2,
        });
        uma.signed(2, &spec)
    };
    refused_by("maint-live-lock", &uma.patch(&path, &take()), "live");
    wait_until("the lock expires", || uma.patch(&path, &take()).is_ok());
}

/// A renewal keeps the API user, so another user must not be able to lock the node again in that user's name.
#[test]
fn an_expired_lock_is_renewed_by_its_api_user_alone() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("revived");
    let uma = person(plane, "uma", &[USERS]);
    let ugo = person(plane, "ugo", &[USERS]);
    let (path, _) = locked(&uma, "revived", "ops");
    let renewal = |seconds: i64| json!({"spec": {"renewTime": at(seconds)}});
    admitted(ugo.patch(&path, &renewal(0)), "a live lock");
    let end = json!({"spec": {"holderIdentity": ""}});
    admitted(uma.patch(&path, &end), "its end");
    let now = at(0);
    let spec = json!({
        "holderIdentity": "ops", "acquireTime": now, "renewTime": now, "leaseDurationSeconds": 1,
        "leaseTransitions": 2,
    });
    admitted(uma.patch(&path, &uma.signed(2, &spec)), "a short lock");
    wait_until("it expires", || {
        let mut next = spec.clone();
        next["leaseTransitions"] = json!(3);
        let dry_run = format!("{path}?dryRun=All");
        ugo.patch(&dry_run, &ugo.signed(3, &next)).is_ok()
    });
    refused_by(
        "maint-user",
        &ugo.patch(&path, &renewal(0)),
        "an expired lock",
    );
    admitted(uma.patch(&path, &renewal(0)), "its own user");
}

/// Other tools leave such Leases. A lock that nobody could take over would block its node.
#[test]
fn a_lock_without_times_has_ended() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("timeless");
    let uma = person(plane, "uma", &[USERS]);
    let lease = json!({
        "metadata": {"name": "timeless", "annotations": uma.signature(0)},
        "spec": {"holderIdentity": "alice", "leaseDurationSeconds": 2_147_483_647},
    });
    admitted(uma.post(LEASES, &lease), "a lease of years");
    let path = format!("{LEASES}/timeless");
    let now = at(0);
    let spec = json!({
        "holderIdentity": "bob", "acquireTime": now, "renewTime": now, "leaseTransitions": 1,
        "leaseDurationSeconds": 60,
    });
    let taken = uma.signed(1, &spec);
    admitted(uma.patch(&path, &taken), "a new holder");
}

/// All other attacks on a live lock start with one of these writes.
#[test]
fn a_live_lock_is_ended_by_its_api_user_alone() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("own-lock");
    let alice = person(plane, "alice", &[USERS]);
    let mallory = person(plane, "mallory", &[USERS, HOLDERS]);
    let (path, lease) = locked(&alice, "own-lock", "alice");
    let user = |value: Option<&str>| json!({"kubectl-maint.dev/user": value});
    let ends = [
        json!({"holderIdentity": ""}),
        json!({"holderIdentity": null}),
        json!({"holderIdentity": "", "leaseTransitions": 2}),
        json!({"holderIdentity": "", "renewTime": at(0), "leaseDurationSeconds": 1}),
        json!({"holderIdentity": "kubeadm:alice", "leaseTransitions": 2}),
    ];
    for spec in ends {
        let what = spec.to_string();
        refused_by(
            "maint-live-lock",
            &mallory.patch(&path, &json!({"spec": spec})),
            &what,
        );
        let signed = mallory.signed(2, &spec);
        refused_by("maint-live-lock", &mallory.patch(&path, &signed), &what);
    }
    // Nobody can replace or remove the API user.
    for value in [Some("1-mallory"), Some("2-mallory"), Some("mallory"), None] {
        let patch = json!({"metadata": {"annotations": user(value)}});
        for by in [&mallory, &alice] {
            refused_by(
                "maint-user",
                &by.patch(&path, &patch),
                &format!("{value:?}"),
            );
        }
    }
    let confirmed = json!({
        "metadata": {"annotations": {
            "kubectl-maint.dev/breaks": format!("{}.1.n1", lease["metadata"]["uid"].as_str().expect("a uid")),
        }},
        "spec": {"holderIdentity": ""},
    });
    let answer = mallory.patch(&path, &confirmed);
    refused_by("maint-live-lock", &answer, "without the right");
    let ada = person(plane, "ada", &[ADMINISTRATORS]);
    admitted(ada.patch(&path, &confirmed), "with the right");
    let (path, _) = locked(&alice, "own-lock-2", "alice");
    let end = json!({"spec": {"holderIdentity": ""}});
    admitted(alice.patch(&path, &end), "its own user");
}

fn owner(node: &Value) -> Value {
    let metadata = &node["metadata"];
    json!({"apiVersion": "v1", "kind": "Node", "name": metadata["name"], "uid": metadata["uid"]})
}

fn note(name: &str, value: Option<&str>) -> Value {
    json!({"metadata": {"annotations": {(format!("kubectl-maint.dev/{name}")): value}}})
}

/// With a wrong owner reference, the garbage collector deletes the Lease.
#[test]
fn a_live_lock_keeps_its_owners_and_annotations() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("live-record");
    let hugo = person(plane, "hugo", &[USERS, HOLDERS]);
    let mallory = person(plane, "mallory", &[USERS, HOLDERS]);
    let ada = person(plane, "ada", &[ADMINISTRATORS]);
    let node = json!({"metadata": {"name": "live-record"}});
    let node = admitted(crate::support::admin(plane).post(NODES, &node), "a node");
    let owners = |owners: Value| json!({"metadata": {"ownerReferences": owners}});
    let mut wrong = owner(&node);
    wrong["uid"] = json!("00000000-0000-0000-0000-000000000000");
    for (name, holder) in [("live-record", "hugo"), ("held-record", "kubeadm:hugo")] {
        let (path, lease) = locked(&hugo, name, holder);
        let own = owners(json!([owner(&node)]));
        refused_by("maint-live-lock", &mallory.patch(&path, &own), "an owner");
        admitted(hugo.patch(&path, &own), "its own user's owner");
        let renewal = |mut patch: Value| {
            patch["spec"] = json!({"renewTime": at(0)});
            patch
        };
        for change in [
            owners(json!([wrong])),
            owners(json!([])),
            owners(json!(null)),
        ] {
            for patch in [change.clone(), renewal(change)] {
                let answer = mallory.patch(&path, &patch);
                refused_by("maint-live-lock", &answer, &patch.to_string());
            }
        }
        // If this annotation could already hold the lock id, an administrator's next careless write would count as a
        // takeover.
        let lock_id = format!("{}.1.n1", lease["metadata"]["uid"].as_str().expect("a uid"));
        for key in [
            "reason",
            "hold-until",
            "purpose",
            "last-holder",
            "released-at",
            "released-by",
            "last-acquisition",
            "breaks",
        ] {
            let patch = note(key, Some(&lock_id));
            refused_by("maint-live-lock", &mallory.patch(&path, &patch), key);
            admitted(hugo.patch(&path, &patch), key);
            let patch = note(key, None);
            refused_by("maint-live-lock", &mallory.patch(&path, &patch), key);
            admitted(hugo.patch(&path, &patch), key);
        }
        for key in ["fenced", "repaired"] {
            admitted(mallory.patch(&path, &note(key, Some("true"))), key);
        }
        // A renewal by a client that does not use annotations.
        admitted(mallory.patch(&path, &renewal(json!({}))), "a renewal");
        let mut taken = note("reason", Some("fire"));
        refused_by("maint-live-lock", &ada.patch(&path, &taken), "unconfirmed");
        taken["metadata"]["annotations"]["kubectl-maint.dev/breaks"] = json!(lock_id);
        admitted(ada.patch(&path, &taken), "a takeover");
    }
}

#[test]
fn the_history_changes_only_with_an_acquisition_or_an_end() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("live-history");
    let hugo = person(plane, "hugo", &[USERS, HOLDERS]);
    let mallory = person(plane, "mallory", &[USERS, HOLDERS]);
    let ada = person(plane, "ada", &[USERS, ADMINISTRATORS]);
    let name = "live-history";
    let node = json!({"metadata": {"name": name}});
    admitted(crate::support::admin(plane).post(NODES, &node), "a node");
    let path = format!("{LEASES}/{name}");
    let history = || {
        let lease = hugo.get(&path);
        lease["metadata"]["annotations"]["kubectl-maint.dev/history"].clone()
    };
    hugo.succeeds(&["acquire", name, "-m", "one"]);
    hugo.succeeds(&["release", name]);
    let other = note("history", Some("[]"));
    let none = note("history", None);
    let refused = |by: &Person, patch: &Value, what: &str| {
        refused_by("maint-history", &by.patch(&path, patch), what);
    };
    refused(&mallory, &other, "free");
    hugo.succeeds(&["acquire", name, "-m", "two"]);
    let written = history();
    assert!(
        written.as_str().is_some_and(|text| text.contains("one")),
        "{written}"
    );
    for by in [&hugo, &mallory, &ada] {
        refused(by, &other, "another history");
        refused(
            by,
            &json!({"metadata": other["metadata"], "spec": {"renewTime": at(0)}}),
            "a renewal",
        );
    }
    refused(&hugo, &none, "its own user");
    refused(&mallory, &none, "no right");
    assert_eq!(history(), written);
    admitted(ada.patch(&path, &none), "an administrator");
    hugo.succeeds(&["hold", name, "-m", "three"]);
    hugo.succeeds(&["unhold", name]);
    let text = history()
        .as_str()
        .map(ToOwned::to_owned)
        .unwrap_or_default();
    assert!(text.contains("two") && text.contains("three"), "{text}");
}

/// An acquisition corrects the owner reference of the Lease.
#[test]
fn an_acquisition_brings_its_owners_and_annotations() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("new-record");
    let uma = person(plane, "uma", &[USERS]);
    let ugo = person(plane, "ugo", &[USERS]);
    let node = json!({"metadata": {"name": "new-record"}});
    let node = admitted(crate::support::admin(plane).post(NODES, &node), "a node");
    let take = |by: &Person, count: i64| {
        let now = at(0);
        let spec = json!({
            "holderIdentity": by.name, "acquireTime": now, "renewTime": now, "leaseDurationSeconds": 1,
            "leaseTransitions": count,
        });
        let mut patch = by.signed(count, &spec);
        patch["metadata"]["ownerReferences"] = json!([owner(&node)]);
        let notes = &mut patch["metadata"]["annotations"];
        notes["kubectl-maint.dev/acquisition"] = json!(format!("{count}-n{count}"));
        notes["kubectl-maint.dev/reason"] = json!(by.name);
        patch
    };
    // Without any field in the spec, the Lease would have no managedFields, and the policy could not check its times.
    let free = json!({"metadata": {"name": "new-record"}, "spec": {"leaseTransitions": 0}});
    admitted(uma.post(LEASES, &free), "a free lease");
    let path = format!("{LEASES}/new-record");
    admitted(uma.patch(&path, &note("reason", Some("next"))), "a note");
    admitted(uma.patch(&path, &take(&uma, 1)), "of a free lease");
    admitted(
        uma.patch(&path, &json!({"metadata": {"ownerReferences": null}})),
        "no owner",
    );
    wait_until("it expires", || ugo.patch(&path, &take(&ugo, 2)).is_ok());
}

#[test]
fn the_garbage_collector_removes_owners_that_are_gone() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("collector");
    let uma = person(plane, "uma", &[USERS]);
    let admin = crate::support::admin(plane);
    let nodes = ["collector-stays", "collector-goes"].map(|name| {
        let node = json!({"metadata": {"name": name}});
        admitted(admin.post(NODES, &node), "a node")
    });
    let (path, _) = locked(&uma, "collector", "uma");
    let owners = json!({"metadata": {"ownerReferences": nodes.each_ref().map(owner)}});
    admitted(uma.patch(&path, &owners), "two owners");
    admitted(admin.delete(&format!("{NODES}/collector-goes")), "it goes");
    wait_until("one owner is left", || {
        admin.get(&path)["metadata"]["ownerReferences"] == json!([owner(&nodes[0])])
    });
}

/// Such locks are left by clients that set the user but no `acquisition` annotation.
#[test]
fn nobody_marks_another_s_lock_as_their_own() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("unmarked");
    let uma = person(plane, "uma", &[USERS]);
    let mallory = person(plane, "mallory", &[USERS]);
    let now = at(0);
    let lease = json!({
        "metadata": {"name": "unmarked", "annotations": uma.signature(1)},
        "spec": {
            "holderIdentity": "uma", "acquireTime": now, "renewTime": now, "leaseDurationSeconds": 600,
            "leaseTransitions": 1,
        },
    });
    admitted(uma.post(LEASES, &lease), "a lock without a mark");
    let path = format!("{LEASES}/unmarked");
    let marked = |by: &Person| {
        let mut patch = json!({"metadata": {"annotations": by.signature(1)}});
        patch["metadata"]["annotations"]["kubectl-maint.dev/acquisition"] = json!("1-m");
        patch
    };
    let answer = mallory.patch(&path, &marked(&mallory));
    refused_by("maint-live-lock", &answer, "another's lock");
    admitted(uma.patch(&path, &marked(&uma)), "one's own");
}

#[test]
fn an_acquisition_names_the_user_who_writes_it() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("signature");
    let uma = person(plane, "uma", &[USERS]);
    let ugo = person(plane, "ugo", &[USERS]);
    let lease = json!({"metadata": {"name": "signature"}, "spec": {"leaseTransitions": 4}});
    admitted(uma.post(LEASES, &lease), "a free lease");
    let path = format!("{LEASES}/signature");
    let now = at(0);
    let spec = json!({
        "holderIdentity": "x", "acquireTime": now, "renewTime": now, "leaseDurationSeconds": 600,
        "leaseTransitions": 5,
    });
    let unsigned = json!({ "spec": spec });
    refused_by("maint-user", &uma.patch(&path, &unsigned), "no user");
    for (what, signed) in [
        ("another user", ugo.signed(5, &spec)),
        ("another count", uma.signed(4, &spec)),
    ] {
        refused_by("maint-user", &uma.patch(&path, &signed), what);
    }
    let planted = json!({"metadata": {"annotations": ugo.signature(5)}});
    refused_by("maint-user", &uma.patch(&path, &planted), "before the lock");
    let created =
        json!({"metadata": {"name": "signature-2", "annotations": ugo.signature(0)}, "spec": {}});
    refused_by("maint-user", &uma.post(LEASES, &created), "with the lease");
    admitted(uma.patch(&path, &uma.signed(5, &spec)), "the user");
    admitted(
        uma.patch(&path, &json!({"spec": {"holderIdentity": ""}})),
        "its end",
    );
}
