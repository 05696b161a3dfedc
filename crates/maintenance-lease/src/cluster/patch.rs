//! A decided write as the JSON of its request.

use serde_json::{Map, Value, json};

use super::wire;
use crate::bugs::{self, Bug};
use crate::history;
use crate::lease::NodeLease;
use crate::notes::{BREAKS, CORDON, HELD_LABEL, KEPT_CORDON, annotation, mark, mark_of_release};
use crate::protocol::{Names, Write};
use crate::repository::Repository;

/// What a write contains besides the fields that the rules decide.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteDetails {
    /// The reason. `None` keeps the reason of a renewal, and leaves an acquisition without one.
    pub(crate) reason: Option<String>,
    /// The ticket that the reason is explained in. `None` as for the reason.
    pub(crate) ticket: Option<String>,
    /// When an administrator expects to be done, as RFC 3339.
    pub(crate) hold_until: Option<String>,
    /// The purpose of a new acquisition, if a program has to recognize it later.
    pub(crate) purpose: Option<String>,
    /// What the lock asks of its Node. `None`: nothing, and a renewal asks for what it did.
    pub(crate) keys: Option<String>,
    /// The write is a hold, so it sets or removes the expected end.
    pub(crate) hold: bool,
    /// Who releases, if not the holder.
    pub(crate) released_by: Option<String>,
    /// The caller confirmed that this ends the acquisition that was seen, which is another's.
    pub(crate) takes_over: bool,
    /// The API user, if known.
    pub(crate) user: Option<String>,
    /// The Lease keeps a history: it locks a node.
    pub(crate) keeps_history: bool,
    /// The uid of the Node that should own the Lease, if it is known.
    pub(crate) node_uid: Option<String>,
}

impl WriteDetails {
    /// Only a reason, if any.
    pub(crate) fn because(reason: Option<&str>) -> Self {
        Self {
            reason: reason.map(ToOwned::to_owned),
            ..Self::default()
        }
    }
}

/// The merge patch of `write` on `seen`: a compare-and-swap on its resource version.
pub(crate) fn merge_patch(
    write: &Write,
    seen: &NodeLease,
    extras: &WriteDetails,
    names: &Names,
) -> Value {
    let mut metadata = Map::new();
    if !bugs::active(Bug::PatchWithoutVersion) {
        metadata.insert(
            "resourceVersion".to_owned(),
            json!(seen.version.0.to_string()),
        );
    }
    let annotations = annotations(write, Some(seen), extras, names);
    if !annotations.is_empty() {
        metadata.insert("annotations".to_owned(), Value::Object(annotations));
    }
    if let (Write::Acquire { .. } | Write::Renew { .. }, Some(uid)) = (write, &extras.node_uid)
        && let Some(owners) = corrected_owners(seen, uid)
    {
        metadata.insert("ownerReferences".to_owned(), owners);
    }
    json!({ "metadata": metadata, "spec": spec(write, names) })
}

/// The Lease that `write` creates for `node` in `repository`.
pub(crate) fn object(
    write: &Write,
    node: &str,
    repository: &Repository,
    extras: &WriteDetails,
    names: &Names,
) -> Value {
    let mut annotations = annotations(write, None, extras, names);
    annotations.retain(|_, value| !value.is_null());
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), json!(node));
    metadata.insert("namespace".to_owned(), json!(repository.namespace()));
    if !repository.labels().is_empty() {
        metadata.insert("labels".to_owned(), json!(repository.labels()));
    }
    metadata.insert("annotations".to_owned(), Value::Object(annotations));
    if let Some(uid) = &extras.node_uid {
        metadata.insert("ownerReferences".to_owned(), json!([owner(node, uid)]));
    }
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": spec(write, names),
    })
}

fn spec(write: &Write, names: &Names) -> Value {
    match *write {
        Write::Acquire {
            holder,
            at,
            duration,
            transitions,
            ..
        } => json!({
            "holderIdentity": names.name(holder),
            "acquireTime": wire::print(at),
            "renewTime": wire::print(at),
            "leaseDurationSeconds": duration,
            "leaseTransitions": transitions,
        }),
        Write::Renew { at, duration, .. } => json!({
            "renewTime": wire::print(at),
            "leaseDurationSeconds": duration,
        }),
        // KEP-1411 says duration 0, which the server rejects.
        Write::Release { renewed, .. } => json!({
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": wire::print(renewed),
        }),
    }
}

/// The annotations to set; null removes one. Annotations of an acquisition are removed with it, to keep them
/// from being taken for the next holder's.
fn annotations(
    write: &Write,
    seen: Option<&NodeLease>,
    extras: &WriteDetails,
    names: &Names,
) -> Map<String, Value> {
    let before = seen.and_then(NodeLease::holder);
    let outdated = seen.is_some_and(|lease| lease.notes.outdated);
    let had_ticket = seen.is_some_and(|lease| lease.notes.ticket.is_some());
    let had_purpose = seen.is_some_and(|lease| lease.notes.purpose.is_some());
    let had_keys = seen.is_some_and(|lease| lease.notes.keys.is_some());
    let of_election = seen.is_some_and(NodeLease::is_of_election);
    let taken_over = seen.filter(|_| extras.takes_over && before.is_some());
    let mut set = Map::new();
    let mut note = |name: &str, value: Value| {
        set.insert(name.to_owned(), value);
    };
    if outdated {
        // Fields that are not written below would keep their old values, as if they belonged to this
        // acquisition.
        for name in annotation::ALL {
            note(name, Value::Null);
        }
    }
    if let Some(lease) = taken_over {
        note(BREAKS, json!(broken_lock_id(lease)));
    }
    let ended_at = match *write {
        Write::Acquire { at, holder, .. } => Some((at, Some(names.name(holder)))),
        Write::Release { at, .. } => Some((at, None)),
        Write::Renew { .. } => None,
    };
    let keeps = seen.filter(|_| extras.keeps_history).zip(ended_at);
    let by = extras.released_by.as_deref();
    if let Some(history) = keeps.and_then(|(seen, (at, next))| history::after(seen, at, next, by)) {
        note(annotation::HISTORY, json!(history));
    }
    match *write {
        Write::Acquire {
            transitions, nonce, ..
        } => {
            note(
                annotation::ACQUISITION,
                json!(mark(transitions, names.name(nonce))),
            );
            if let Some(user) = &extras.user {
                note(annotation::USER, json!(mark(transitions, user)));
            }
            note(annotation::REASON, json!(extras.reason));
            note(annotation::HOLD_UNTIL, json!(extras.hold_until));
            if had_ticket || extras.ticket.is_some() {
                note(annotation::TICKET, json!(extras.ticket));
            }
            if had_purpose || extras.purpose.is_some() {
                note(annotation::PURPOSE, json!(extras.purpose));
            }
            let keys = keys(seen, extras);
            if had_keys || keys.is_some() {
                note(annotation::KEYS, json!(keys));
            }
            if let Some(before) = before {
                note(annotation::LAST_HOLDER, json!(before));
                note(annotation::RELEASED_AT, Value::Null);
            }
            if seen.is_some_and(|lease| lease.released_by().is_some()) {
                note(annotation::RELEASED_BY, Value::Null);
            }
            // Its holder may not know yet that they had it.
            if let Some(ended) = seen.and_then(ended) {
                note(annotation::LAST_ACQUISITION, json!(ended));
            }
        }
        Write::Renew { .. } => {
            if let Some(reason) = &extras.reason {
                note(annotation::REASON, json!(reason));
            }
            if extras.ticket.is_some() {
                note(annotation::TICKET, json!(extras.ticket));
            }
            if extras.hold_until.is_some() {
                note(annotation::HOLD_UNTIL, json!(extras.hold_until));
            }
            if extras.keys.is_some() {
                note(annotation::KEYS, json!(keys(seen, extras)));
            }
        }
        Write::Release { at, .. } => {
            note(annotation::LAST_HOLDER, json!(before));
            note(annotation::RELEASED_AT, wire::print(at));
            if let Some(by) = &extras.released_by {
                note(annotation::RELEASED_BY, json!(by));
            }
            note(annotation::REASON, json!(extras.reason));
            note(annotation::HOLD_UNTIL, Value::Null);
            if had_ticket {
                note(annotation::TICKET, Value::Null);
            }
            if had_purpose && !of_election {
                note(annotation::PURPOSE, Value::Null);
            }
            if had_keys {
                note(annotation::KEYS, Value::Null);
            }
            // The remaining text does not belong to the next holder, whatever tool they use.
            let words = seen.filter(|_| extras.reason.is_some());
            let mark = words.map(|lease| mark_of_release(lease.transitions));
            note(annotation::ACQUISITION, json!(mark));
            if let Some(ended) = seen.and_then(ended) {
                note(annotation::LAST_ACQUISITION, json!(ended));
            }
        }
    }
    set
}

/// What the lock after a write asks of its Node. The cordon of the lock on `seen` is kept: only the end of the last lock undoes
/// it.
pub(super) fn keys(seen: Option<&NodeLease>, extras: &WriteDetails) -> Option<String> {
    let has = |keys: &str, wanted: &str| keys.split(',').any(|key| key == wanted);
    let before = seen.filter(|lease| lease.holder().is_some());
    let before = before.and_then(NodeLease::keys).unwrap_or_default();
    let is_cordoned = has(before, CORDON) || has(before, KEPT_CORDON);
    match &extras.keys {
        None if is_cordoned => Some(format!("{HELD_LABEL},{KEPT_CORDON}")),
        Some(keys) if is_cordoned && !has(keys, CORDON) => Some(format!("{keys},{KEPT_CORDON}")),
        keys => keys.clone(),
    }
}

/// The mark of the acquisition in `lease`, which a write ends.
fn ended(lease: &NodeLease) -> Option<String> {
    lease.holder()?;
    let nonce = lease.notes.nonce.as_deref()?;
    Some(mark(lease.transitions, nonce))
}

/// The lock id of the acquisition that stands on `lease`. An acquisition by another tool has no nonce: then
/// nothing follows the last dot.
fn broken_lock_id(lease: &NodeLease) -> String {
    let nonce = lease.notes.nonce.as_deref().unwrap_or_default();
    format!("{}.{}.{nonce}", lease.uid, lease.transitions)
}

fn owner(node: &str, uid: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Node", "name": node, "uid": uid })
}

/// The Lease's owners, with the current Node among them; `None` if they are right already.
///
/// A merge patch replaces a list as a whole, so owners that others wrote are repeated.
fn corrected_owners(seen: &NodeLease, uid: &str) -> Option<Value> {
    let mut owners: Vec<Value> = seen
        .owners
        .as_ref()
        .and_then(|owners| serde_json::from_str(owners.get()).ok())
        .unwrap_or_default();
    let is_node = |owner: &Value| owner["kind"] == "Node" && owner["apiVersion"] == "v1";
    if owners
        .iter()
        .any(|owner| is_node(owner) && owner["uid"] == uid)
    {
        return None;
    }
    owners.retain(|owner| !(is_node(owner) && owner["name"] == seen.node()));
    owners.push(owner(seen.node(), uid));
    Some(Value::Array(owners))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Instant;

    fn seen(rest: &str) -> NodeLease {
        let json = format!(
            r#"{{"metadata":{{"name":"worker-1","uid":"u","resourceVersion":"41"{rest}}},
                "spec":{{"holderIdentity":"bob","leaseTransitions":1}}}}"#
        );
        NodeLease::from_json(json.as_bytes(), &Repository::default()).expect("a Lease")
    }

    fn acquire(names: &mut Names) -> Write {
        Write::Acquire {
            holder: names.id("alice"),
            at: Instant::from_micros(1_000_000),
            duration: 60,
            transitions: 2,
            nonce: names.id("n2"),
        }
    }

    #[test]
    fn an_acquisition_writes_all_five_fields_and_its_nonce_on_the_version_seen() {
        let mut names = Names::default();
        let write = acquire(&mut names);
        let extras = WriteDetails {
            reason: Some("new kernel".to_owned()),
            node_uid: Some("node-uid".to_owned()),
            ..WriteDetails::default()
        };
        assert_eq!(
            merge_patch(&write, &seen(""), &extras, &names),
            json!({
                "metadata": {
                    "resourceVersion": "41",
                    "annotations": {
                        "kubectl-maint.dev/acquisition": "2-n2",
                        "kubectl-maint.dev/reason": "new kernel",
                        "kubectl-maint.dev/hold-until": null,
                        "kubectl-maint.dev/last-holder": "bob",
                        "kubectl-maint.dev/released-at": null,
                    },
                    "ownerReferences": [
                        {"apiVersion": "v1", "kind": "Node", "name": "worker-1", "uid": "node-uid"}
                    ],
                },
                "spec": {
                    "holderIdentity": "alice",
                    "acquireTime": "1970-01-01T00:00:01.000000Z",
                    "renewTime": "1970-01-01T00:00:01.000000Z",
                    "leaseDurationSeconds": 60,
                    "leaseTransitions": 2,
                },
            })
        );
    }

    #[test]
    fn the_releaser_is_recorded_until_the_next_acquisition() {
        let mut names = Names::default();
        let lease = seen("");
        let release = Write::Release {
            of: lease.reduced(&mut names).acquisition().expect("held"),
            at: Instant::from_micros(1),
            renewed: Instant::from_micros(0),
        };
        let annotations =
            |write: &Write, lease: &NodeLease, extras: &WriteDetails, names: &Names| {
                merge_patch(write, lease, extras, names)["metadata"]["annotations"].clone()
            };
        let by_another = WriteDetails {
            released_by: Some("carol".to_owned()),
            ..WriteDetails::default()
        };
        let forced = annotations(&release, &lease, &by_another, &names);
        assert_eq!(forced["kubectl-maint.dev/released-by"], "carol");
        assert_eq!(forced.get("kubectl-maint.dev/breaks"), None);
        let own = annotations(&release, &lease, &WriteDetails::default(), &names);
        assert_eq!(own.get("kubectl-maint.dev/released-by"), None);

        let free = seen(r#","annotations":{"kubectl-maint.dev/released-by":"carol"}"#);
        let acquire = Write::Acquire {
            holder: names.id("alice"),
            at: Instant::from_micros(2),
            duration: 60,
            transitions: 2,
            nonce: names.id("n2"),
        };
        let next = annotations(&acquire, &free, &WriteDetails::default(), &names);
        assert_eq!(
            next.get("kubectl-maint.dev/released-by"),
            Some(&Value::Null)
        );
    }

    #[test]
    fn a_confirmed_takeover_names_the_lock_that_it_ends() {
        let mut names = Names::default();
        let write = acquire(&mut names);
        let confirmed = WriteDetails {
            takes_over: true,
            ..WriteDetails::default()
        };
        let breaks = |lease: &NodeLease, extras: &WriteDetails| {
            let patch = merge_patch(&write, lease, extras, &names);
            patch["metadata"]["annotations"]
                .get("kubectl-maint.dev/breaks")
                .cloned()
        };
        let marked = seen(r#","annotations":{"kubectl-maint.dev/acquisition":"1-n1"}"#);
        assert_eq!(breaks(&marked, &confirmed), Some(json!("u.1.n1")));
        assert_eq!(breaks(&marked, &WriteDetails::default()), None);
        let of_another_tool = seen("");
        assert_eq!(breaks(&of_another_tool, &confirmed), Some(json!("u.1.")));
    }

    #[test]
    fn an_acquisition_names_its_api_user_and_nothing_else_does() {
        let mut names = Names::default();
        let lease = seen(r#","annotations":{"kubectl-maint.dev/user":"1-bob"}"#);
        let user = |write: &Write, extras: &WriteDetails, names: &Names| {
            let patch = merge_patch(write, &lease, extras, names);
            patch["metadata"]["annotations"]
                .get("kubectl-maint.dev/user")
                .cloned()
        };
        let known = WriteDetails {
            user: Some("alice".to_owned()),
            ..WriteDetails::default()
        };
        let write = acquire(&mut names);
        assert_eq!(user(&write, &known, &names), Some(json!("2-alice")));
        assert_eq!(user(&write, &WriteDetails::default(), &names), None);
        let release = Write::Release {
            of: lease.reduced(&mut names).acquisition().expect("held"),
            at: Instant::from_micros(1),
            renewed: Instant::from_micros(0),
        };
        assert_eq!(user(&release, &known, &names), None);
    }

    #[test]
    fn a_purpose_is_that_of_one_acquisition() {
        let mut names = Names::default();
        let write = acquire(&mut names);
        let purpose = |lease: &NodeLease, purpose: Option<&str>| {
            let extras = WriteDetails {
                purpose: purpose.map(ToOwned::to_owned),
                ..WriteDetails::default()
            };
            let patch = merge_patch(&write, lease, &extras, &names);
            patch["metadata"]["annotations"]
                .get("kubectl-maint.dev/purpose")
                .cloned()
        };
        let without = seen("");
        assert_eq!(purpose(&without, Some("fencing")), Some(json!("fencing")));
        assert_eq!(purpose(&without, None), None);
        let with = seen(r#","annotations":{"kubectl-maint.dev/purpose":"fencing"}"#);
        assert_eq!(with.purpose(), Some("fencing"));
        assert_eq!(purpose(&with, None), Some(Value::Null));
    }

    #[test]
    fn the_keys_are_those_of_one_lock_and_a_cordon_is_kept() {
        let mut names = Names::default();
        let asked = |write: &Write, names: &Names, before: Option<&str>, keys: Option<&str>| {
            let before = before.map_or_else(String::new, |keys| {
                format!(r#","annotations":{{"kubectl-maint.dev/keys":"{keys}"}}"#)
            });
            let extras = WriteDetails {
                keys: keys.map(ToOwned::to_owned),
                ..WriteDetails::default()
            };
            let patch = merge_patch(write, &seen(&before), &extras, names);
            let annotations = &patch["metadata"]["annotations"];
            annotations.get("kubectl-maint.dev/keys").cloned()
        };
        let acquisition = acquire(&mut names);
        let of = seen("").reduced(&mut names).acquisition().expect("held");
        let at = Instant::from_micros(1);
        let renewal = Write::Renew {
            of,
            at,
            duration: 60,
        };
        let release = Write::Release {
            of,
            at,
            renewed: at,
        };
        for (write, before, keys, expected) in [
            (&acquisition, None, None, None),
            (&acquisition, None, Some("held"), Some(json!("held"))),
            (&acquisition, Some("held,fluo"), None, Some(Value::Null)),
            (
                &acquisition,
                Some("held,cordon"),
                None,
                Some(json!("held,kept-cordon")),
            ),
            (
                &acquisition,
                Some("held,kept-cordon"),
                Some("held,auto"),
                Some(json!("held,auto,kept-cordon")),
            ),
            (
                &acquisition,
                Some("held,cordon"),
                Some("held,cordon"),
                Some(json!("held,cordon")),
            ),
            (&renewal, Some("held,cordon"), None, None),
            (
                &renewal,
                Some("held,cordon"),
                Some("held"),
                Some(json!("held,kept-cordon")),
            ),
            (&release, Some("held,cordon"), None, Some(Value::Null)),
            (&release, None, None, None),
        ] {
            let found = asked(write, &names, before, keys);
            assert_eq!(found, expected, "{write:?}: {before:?}, {keys:?}");
        }
    }

    #[test]
    fn the_purpose_goes_with_a_release_but_for_an_election() {
        let after = |purpose: &str| {
            let mut names = Names::default();
            let lease = seen(&format!(
                r#","annotations":{{"kubectl-maint.dev/purpose":"{purpose}"}}"#
            ));
            let release = Write::Release {
                of: lease.reduced(&mut names).acquisition().expect("held"),
                at: Instant::from_micros(1),
                renewed: Instant::from_micros(0),
            };
            let patch = merge_patch(&release, &lease, &WriteDetails::default(), &names);
            patch["metadata"]["annotations"]
                .get("kubectl-maint.dev/purpose")
                .cloned()
        };
        assert_eq!(after("fencing"), Some(Value::Null));
        assert_eq!(after("leader-election"), None);
    }

    #[test]
    fn owners_that_others_wrote_stay() {
        let other = r#"{"apiVersion":"v1","kind":"Pod","name":"p","uid":"p-uid"}"#;
        let old = r#"{"apiVersion":"v1","kind":"Node","name":"worker-1","uid":"old"}"#;
        let lease = seen(&format!(r#","ownerReferences":[{old},{other}]"#));
        let owners = corrected_owners(&lease, "new").expect("a correction");
        assert_eq!(owners[0]["kind"], "Pod");
        assert_eq!(owners[1]["uid"], "new");
        assert_eq!(corrected_owners(&lease, "old"), None);
    }

    #[test]
    fn a_renewal_touches_its_own_two_fields_only() {
        let mut names = Names::default();
        let lease = seen("");
        let write = Write::Renew {
            of: lease.reduced(&mut names).acquisition().expect("held"),
            at: Instant::from_micros(0),
            duration: 60,
        };
        assert_eq!(
            merge_patch(&write, &lease, &WriteDetails::default(), &names),
            json!({
                "metadata": {"resourceVersion": "41"},
                "spec": {
                    "renewTime": "1970-01-01T00:00:00.000000Z",
                    "leaseDurationSeconds": 60,
                },
            })
        );
    }

    #[test]
    fn a_renewal_takes_notes_of_an_earlier_acquisition_away() {
        let mut names = Names::default();
        let notes = r#","annotations":{"kubectl-maint.dev/acquisition":"0-n0"}"#;
        let lease = seen(notes);
        let write = Write::Renew {
            of: lease.reduced(&mut names).acquisition().expect("held"),
            at: Instant::from_micros(0),
            duration: 60,
        };
        let extras = WriteDetails {
            reason: Some("new kernel".to_owned()),
            ..WriteDetails::default()
        };
        assert_eq!(
            merge_patch(&write, &lease, &extras, &names)["metadata"]["annotations"],
            json!({
                "kubectl-maint.dev/acquisition": null,
                "kubectl-maint.dev/reason": "new kernel",
                "kubectl-maint.dev/hold-until": null,
                "kubectl-maint.dev/purpose": null,
                "kubectl-maint.dev/keys": null,
                "kubectl-maint.dev/last-holder": null,
                "kubectl-maint.dev/released-at": null,
                "kubectl-maint.dev/released-by": null,
                "kubectl-maint.dev/ticket": null,
            })
        );
    }
}
