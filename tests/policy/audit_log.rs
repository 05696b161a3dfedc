//! What the audit log says about a write to a lock: the user, the broken rules, and the lock.

use control_plane::{NodeSpec, Rule};
use serde_json::{Value, json};

use crate::support::{
    ADMINISTRATORS, Audited, HOLDERS, LEASES, Mode, NODES, USERS, admitted, person, refused_by,
    wait_until,
};

/// The annotations of the last write that `user` sent to `path`. Those of the policies that are not about locks are
/// left out.
fn annotations(cluster: &Audited, user: &str, path: &str) -> Value {
    let mut found = Value::Null;
    wait_until("the audit log has the write", || {
        let events = cluster.events(user);
        let event = events.into_iter().rfind(|event| {
            let uri = event["requestURI"].as_str().expect("a path");
            uri.split('?').next() == Some(path)
        });
        found = event.map_or(Value::Null, |event| event["annotations"].clone());
        !found.is_null()
    });
    found
}

/// The code of the rule that the write broke.
fn broken_rule(annotations: &Value) -> &str {
    let failure = &annotations["validation.policy.admission.k8s.io/validation_failure"];
    let failure = failure.as_str().unwrap_or_default();
    let code = failure.split_once(r#""message":""#);
    code.and_then(|(_, message)| message.split(':').next())
        .unwrap_or_default()
}

#[test]
fn the_audit_log_names_the_rule_and_the_lock() {
    let Some(cluster) = Audited::in_turn() else {
        return;
    };
    let plane = &cluster.plane;
    let _logs = plane.keep_logs_on_panic("audit-log");
    for user in ["audit-log-bob", "audit-log-ada"] {
        let nodes = Rule::new("", &["nodes"], &["get", "patch"]);
        plane.grant(user, &[nodes]).expect("rights");
    }
    let alice = person(plane, "audit-log-alice", &[USERS, HOLDERS]);
    let bob = person(plane, "audit-log-bob", &[USERS]);
    let ada = person(plane, "audit-log-ada", &[USERS, ADMINISTRATORS]);
    for mode in [Mode::Deny, Mode::Audit] {
        cluster.set_mode(mode);
        let name = &format!("audit-log-{mode:?}").to_lowercase();
        plane
            .create_nodes(&[NodeSpec::ready(name)])
            .expect("a node");
        let (lease, node) = (format!("{LEASES}/{name}"), format!("{NODES}/{name}"));
        let held = alice.succeeds(&["hold", name, "-m", "disk", "-o", "lock-id"]);
        let lock_id = held.stdout.trim();
        let cordon = json!({"spec": {"unschedulable": true}});
        let reason = json!({"metadata": {"annotations": {"kubectl-maint.dev/reason": "mine"}}});
        for (policy, path, patch, rule) in [
            ("leases", &lease, reason, "maint-live-lock"),
            ("nodes", &node, cordon, "maint-held-cordon"),
        ] {
            let answer = bob.patch(path, &patch);
            match mode {
                Mode::Audit => drop(admitted(answer, rule)),
                Mode::Deny => refused_by(rule, &answer, rule),
            }
            let noted = annotations(&cluster, &bob.name, path);
            assert_eq!(broken_rule(&noted), rule, "{noted}");
            let key = |key: &str| noted[format!("kubectl-maint-{policy}/{key}")].clone();
            assert_eq!(key("lock-id"), *lock_id, "{noted}");
            assert_eq!(key("takeover"), Value::Null, "{noted}");
        }
        // A takeover breaks no rule, but is in the audit log.
        ada.succeeds(&["unhold", name, "--yes"]);
        for (policy, path) in [("leases", &lease), ("nodes", &node)] {
            let noted = annotations(&cluster, &ada.name, path);
            assert_eq!(broken_rule(&noted), "", "{noted}");
            let key = format!("kubectl-maint-{policy}/takeover");
            assert_eq!(noted[key], *lock_id, "{noted}");
        }
        // Without a lock, the log has no annotations.
        let other = json!({"metadata": {"annotations": {"example.com/x": name}}});
        admitted(bob.patch(&lease, &other), "another annotation");
        let noted = annotations(&cluster, &bob.name, &lease).to_string();
        assert!(!noted.contains("kubectl-maint-leases/"), "{noted}");
    }
}
