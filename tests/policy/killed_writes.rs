//! Commands that are killed before each of their writes, in audit and in deny mode. `doctor --fix` and the end of the lock remove
//! everything that is left.

use std::thread;

use control_plane::{NodeSpec, Rule};
use serde_json::{Value, json};

use crate::support::{
    ADMINISTRATORS, Audited, End, HOLDERS, LEASES, Mode, NODES, Person, USERS, about, person,
    refused_by, wait_until,
};

/// A command to kill.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    /// The command that alice runs first.
    before: Option<&'static str>,
    by: By,
    command: &'static str,
    /// The minimum number of writes if the command is not killed.
    writes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Alice,
    Bob,
    /// Has the right to take over.
    Ada,
}

const CASES: [Case; 12] = [
    Case {
        name: "hold",
        before: None,
        by: By::Alice,
        command: "hold NODE -m why --cordon",
        writes: 2,
    },
    Case {
        name: "hold-again",
        before: Some("hold NODE -m why"),
        by: By::Alice,
        command: "hold NODE -m because --cordon",
        writes: 2,
    },
    Case {
        name: "hold-own-lock",
        before: Some("acquire NODE --cordon --opt-outs=auto"),
        by: By::Alice,
        command: "hold NODE -m why",
        writes: 2,
    },
    Case {
        name: "hold-taken-over",
        before: Some("hold NODE -m why --cordon"),
        by: By::Ada,
        command: "hold NODE -m fire --take-over --yes",
        writes: 2,
    },
    Case {
        name: "lock-taken-over",
        before: Some("acquire NODE --cordon --opt-outs=auto"),
        by: By::Ada,
        command: "hold NODE -m fire --take-over --yes --cordon",
        writes: 2,
    },
    Case {
        name: "unhold",
        before: Some("hold NODE -m why --cordon"),
        by: By::Alice,
        command: "unhold NODE",
        writes: 2,
    },
    Case {
        name: "unhold-other",
        before: Some("hold NODE -m why --cordon"),
        by: By::Ada,
        command: "unhold NODE --yes",
        writes: 2,
    },
    Case {
        name: "acquire",
        before: None,
        by: By::Alice,
        command: "acquire NODE --cordon --opt-outs=auto --reentry",
        writes: 2,
    },
    Case {
        name: "renew",
        before: Some("acquire NODE --cordon --duration 10m"),
        by: By::Alice,
        command: "renew NODE --duration 1h",
        writes: 2,
    },
    Case {
        name: "release",
        before: Some("acquire NODE --cordon --opt-outs=auto"),
        by: By::Alice,
        command: "release NODE",
        writes: 2,
    },
    Case {
        name: "release-other",
        before: Some("acquire NODE --cordon --opt-outs=auto"),
        by: By::Ada,
        command: "release NODE --force --yes",
        writes: 2,
    },
    // Bob's command asks for nothing, but keeps the cordon of alice's lock.
    Case {
        name: "expired",
        // A command may write to the Node for at most half of the duration, which must be long enough for a busy
        // machine.
        before: Some("acquire NODE --cordon --opt-outs=auto --duration 12s"),
        by: By::Bob,
        command: "acquire NODE --reentry --take-expired --wait --timeout 2m",
        // `doctor` of another test may remove the label first.
        writes: 1,
    },
];

/// The cluster and its users.
struct Stage<'a> {
    cluster: &'a Audited,
    mode: Mode,
    alice: Person,
    bob: Person,
    ada: Person,
}

impl<'a> Stage<'a> {
    fn new(cluster: &'a Audited, mode: Mode) -> Self {
        cluster.set_mode(mode);
        let plane = &cluster.plane;
        let nodes = Rule::new("", &["nodes"], &["get", "patch"]);
        plane.grant("killed-ada", &[nodes]).expect("rights");
        let person = |name, groups: &[&str]| person(plane, name, groups);
        Self {
            cluster,
            mode,
            alice: person("killed-alice", &[USERS, HOLDERS]),
            bob: person("killed-bob", &[USERS, HOLDERS]),
            ada: person("killed-ada", &[USERS, ADMINISTRATORS]),
        }
    }

    fn person(&self, by: By) -> &Person {
        match by {
            By::Alice => &self.alice,
            By::Bob => &self.bob,
            By::Ada => &self.ada,
        }
    }

    fn lease(&self, node: &str) -> Option<Value> {
        let list = self.cluster.admin.get(LEASES);
        let mut leases = list["items"].as_array().into_iter().flatten();
        leases
            .find(|lease| lease["metadata"]["name"] == node)
            .cloned()
    }

    /// The lock id in the Lease, if the node is locked.
    fn lock_id(&self, node: &str) -> Option<String> {
        let lease = self.lease(node)?;
        let is_locked = lease["spec"]["holderIdentity"] != "";
        let mark = lease["metadata"]["annotations"]["kubectl-maint.dev/acquisition"].as_str()?;
        let uid = lease["metadata"]["uid"].as_str()?;
        is_locked.then(|| format!("{uid}.{}", mark.replacen('-', ".", 1)))
    }

    /// Everything that a lock has left on the Node.
    fn left_behind(&self, node: &str) -> Vec<String> {
        let seen = self.cluster.admin.get(&format!("{NODES}/{node}"));
        let keys = ["labels", "annotations"].into_iter().flat_map(|map| {
            let map = seen["metadata"][map].as_object().cloned();
            map.unwrap_or_default().into_iter().map(|(key, _)| key)
        });
        let is_ours = |key: &String| {
            key.starts_with("kubectl-maint.dev/held")
                || key == "cluster-autoscaler.kubernetes.io/scale-down-disabled"
                || key == "remediation.medik8s.io/exclude-from-remediation"
        };
        let cordon = (seen["spec"]["unschedulable"] == json!(true)).then(|| "cordon".to_owned());
        keys.filter(is_ours).chain(cordon).collect()
    }

    /// Kills the command of `case` after each number of writes, and repairs that.
    fn try_each_write(&self, case: Case) {
        for writes in 0.. {
            let node = format!("{}-{:?}-{writes}", case.name, self.mode).to_lowercase();
            let what = format!("{node}: {}", case.command);
            let created = self.cluster.plane.create_nodes(&[NodeSpec::ready(&node)]);
            created.expect("a node");
            if let Some(before) = case.before {
                self.alice.succeeds(&about(before, &node));
            }
            let by = self.person(case.by);
            let command = about(case.command, &node);
            let end = by.killed_after(&self.cluster.plane, writes, &command);
            if let End::ByItself(run) = end {
                assert_eq!(run.code, 0, "{what}: {run:?}");
                assert!(writes >= case.writes, "{what}: {writes} writes");
                return;
            }
            self.ask_doctor(&node, &what);
            assert_eq!(self.left_behind(&node), [""; 0], "{what}");
            assert_eq!(self.lock_id(&node), None, "{what}");
        }
    }

    /// Runs `doctor --fix`, and ends the lock that is left, if there is one.
    fn ask_doctor(&self, node: &str, what: &str) {
        // As ada: others may not remove the label of a lock that ada was about to take over.
        let run = self.ada.maint(&["doctor", "--fix"]);
        let lock_id = self.lock_id(node);
        let seen = self.cluster.admin.get(&format!("{NODES}/{node}"));
        let metadata = &seen["metadata"];
        let labeled = &metadata["annotations"]["kubectl-maint.dev/held-lock-id"];
        if *labeled != Value::Null {
            assert_eq!(labeled.as_str(), lock_id.as_deref(), "{what}: {run:?}");
        }
        if lock_id.is_some() {
            self.ada
                .succeeds(&["hold", node, "-m", "end", "--take-over", "--yes"]);
            self.ada.succeeds(&["unhold", node]);
        }
    }
}

#[test]
fn what_a_killed_command_leaves_is_repaired() {
    let Some(cluster) = Audited::in_turn() else {
        return;
    };
    let _logs = cluster.plane.keep_logs_on_panic("killed-writes");
    for mode in [Mode::Audit, Mode::Deny] {
        let stage = Stage::new(&cluster, mode);
        // In parallel, because some cases wait for locks to expire.
        thread::scope(|scope| {
            for case in CASES {
                let stage = &stage;
                scope.spawn(move || stage.try_each_write(case));
            }
        });
    }
    assert_eq!(cluster.failures("killed-"), [Value::Null; 0]);
}

/// The next `with` waits until the lock expires.
#[test]
fn what_a_killed_with_leaves_goes_with_the_next_one() {
    let Some(cluster) = Audited::in_turn() else {
        return;
    };
    let _logs = cluster.plane.keep_logs_on_panic("killed-with");
    let stage = Stage::new(&cluster, Mode::Deny);
    let with = "with NODE --cordon --opt-outs=auto --request-timeout 3s --grace 1s --lease-duration 15s \
                --take-expired --wait --timeout 2m -- true";
    // The four writes are: the lock, the Node, the end of the lock, and the Node again.
    thread::scope(|scope| {
        for writes in 1..4 {
            let (stage, cluster) = (&stage, &cluster);
            scope.spawn(move || {
                let node = &format!("with-{writes}");
                let created = cluster.plane.create_nodes(&[NodeSpec::ready(node)]);
                created.expect("a node");
                let with = about(with, node);
                let end = stage.alice.killed_after(&cluster.plane, writes, &with);
                assert!(matches!(end, End::Killed), "{writes}: {end:?}");
                stage.alice.succeeds(&with);
                assert_eq!(stage.left_behind(node), [""; 0], "{writes}");
                assert_eq!(stage.lock_id(node), None, "{writes}");
            });
        }
    });
    assert_eq!(cluster.failures("killed-"), [Value::Null; 0]);
}

/// Nothing is repaired: once the lock has expired, others can change the Node.
#[test]
fn what_a_killed_command_leaves_protects_nothing_after_its_lock_has_expired() {
    let Some(cluster) = Audited::in_turn() else {
        return;
    };
    let _logs = cluster.plane.keep_logs_on_panic("killed-lapse");
    let stage = Stage::new(&cluster, Mode::Deny);
    let node = "lapse";
    let created = cluster.plane.create_nodes(&[NodeSpec::ready(node)]);
    created.expect("a node");
    let acquire = about("acquire NODE --cordon --duration 5s", node);
    stage.alice.succeeds(&acquire);
    let release = about("release NODE", node);
    let end = stage.alice.killed_after(&cluster.plane, 0, &release);
    assert!(matches!(end, End::Killed), "{end:?}");
    let path = format!("{NODES}/{node}");
    let change = json!({"metadata": {
        "labels": {"kubectl-maint.dev/held": null}, "annotations": {"example.com/at": "now"},
    }});
    // Another user, who may not take over.
    let bob = person(&cluster.plane, "lapse-bob", &[USERS, HOLDERS]);
    let unlabel = || bob.patch(&path, &change);
    refused_by("maint-held-record", &unlabel(), "before the end");
    wait_until("the label can be removed", || unlabel().is_ok());
}
