//! Every verb that writes, as users with the fewest rights, in audit and in deny mode: no policy finds a broken rule.

use std::time::Duration;

use control_plane::{NodeSpec, Readiness, Rule};
use serde_json::{Value, json};

use crate::support::{
    ADMINISTRATORS, Audited, HOLDERS, LEASES, Mode, NODES, Person, USERS, about, admitted, person,
    refused_by, wait_until,
};

/// Command lines of a user, who may lock nodes but not change them.
const USER: [&str; 18] = [
    "acquire NODE -m kernel",
    "acquire NODE --reentry",
    "renew NODE",
    "renew NODE --duration +1m",
    "renew NODE --duration 1h -m more",
    "release NODE -m done",
    "acquire NODE --duration 30m",
    "release NODE",
    "acquire NODE --duration 1s",
    "release NODE",
    "acquire NODE --wait --timeout 1m --take-expired --duration 1s",
    "release --mine",
    "with NODE --wait --timeout 1m --take-expired -- true",
    "with NODE -m test -- true",
    "acquire NODE --opt-outs=none",
    "renew NODE",
    "release --mine",
    "acquire NODE --dry-run",
];

/// Command lines of a holder, who may also hold nodes and change them.
const HOLDER: [&str; 12] = [
    "hold NODE -m disk --expect-until 2d",
    "hold NODE -m disks --ticket OPS-7 --cordon",
    "unhold NODE",
    "acquire NODE --cordon --opt-outs=auto",
    "renew NODE",
    "hold NODE -m disk",
    "release NODE",
    "hold NODE -m disk --wait --timeout 1m --take-expired --opt-outs=none",
    "unhold --mine",
    "with NODE --opt-outs=karpenter -- true",
    "with NODE --cordon --wait -- true",
    "hold NODE -m disk --cordon",
];

/// Command lines of an administrator, who takes over the lock of a holder.
const ADMINISTRATOR: [&str; 5] = [
    "hold NODE -m fire --take-over --yes",
    "unhold NODE",
    "acquire NODE --opt-outs=none",
    "release NODE",
    "history NODE",
];

fn each(by: &Person, node: &str, lines: &[&str]) {
    for line in lines {
        by.succeeds(&about(line, node));
    }
}

/// Fences the node, and unfences it after it has come back.
fn fence(cluster: &Audited, by: &Person, name: &str) {
    let path = format!("{NODES}/{name}/status");
    let boots = |id: &str| {
        let status = json!({"status": {"nodeInfo": {"bootID": id}}});
        admitted(cluster.admin.patch(&path, &status), "its kubelet");
    };
    let node = NodeSpec {
        name: name.to_owned(),
        ready: Readiness::Unknown,
        heartbeat_age: Duration::from_secs(300),
        ..NodeSpec::default()
    };
    cluster.plane.create_nodes(&[node]).expect("a node");
    boots("boot-1");
    let accepted = ["--accept-risk=mass-loss", "-m", "fire"];
    by.succeeds(&[&["fence", name][..], &accepted, &["--", "true"]].concat());
    boots("boot-2");
    cluster.plane.heartbeat(&[name]).expect("a heartbeat");
    by.succeeds(&["unfence", name]);
}

/// Sends a forged write for each policy. Audit mode admits it, deny mode refuses it, and the audit log has it in both
/// modes.
fn forge(cluster: &Audited, mode: Mode) {
    let name = format!("forger-{mode:?}").to_lowercase();
    let forger = person(&cluster.plane, &name, &["system:masters"]);
    let lease = json!({
        "metadata": {"name": name},
        "spec": {
            "holderIdentity": "mallory", "renewTime": "2020-01-01T00:00:00.000000Z",
            "leaseDurationSeconds": 60,
        },
    });
    let label = json!({"metadata": {"labels": {"kubectl-maint.dev/held": "true"}}});
    let created = cluster.plane.create_nodes(&[NodeSpec::ready(&name)]);
    created.expect("a node");
    let dry_run = |path: &str| format!("{path}?dryRun=All");
    let leases = dry_run(LEASES);
    let node = dry_run(&format!("{NODES}/{name}"));
    for (code, answer) in [
        ("maint-clock", forger.post(&leases, &lease)),
        ("maint-held-user", forger.patch(&node, &label)),
    ] {
        match mode {
            Mode::Audit => drop(admitted(answer, code)),
            Mode::Deny => refused_by(code, &answer, "forged"),
        }
        wait_until("the audit log has it", || {
            let failures = cluster.failures(&name);
            failures
                .iter()
                .any(|event| event.to_string().contains(code))
        });
    }
}

#[test]
fn no_verb_breaks_a_rule() {
    let Some(cluster) = Audited::in_turn() else {
        return;
    };
    let plane = &cluster.plane;
    let _logs = plane.keep_logs_on_panic("verbs");
    let nodes = Rule::new("", &["nodes"], &["get", "patch"]);
    plane.grant("verbs-ada", &[nodes]).expect("rights");
    let hold = Rule::new("coordination.k8s.io", &["leases"], &["hold"]);
    plane.grant("verbs-fay", &[hold]).expect("rights");
    let uma = person(plane, "verbs-uma", &[USERS]);
    let hugo = person(plane, "verbs-hugo", &[USERS, HOLDERS]);
    let ada = person(plane, "verbs-ada", &[USERS, ADMINISTRATORS]);
    let fay = person(plane, "verbs-fay", &[USERS, "kubectl-maint:fencers"]);
    for mode in [Mode::Audit, Mode::Deny] {
        cluster.set_mode(mode);
        let name = format!("verbs-{mode:?}").to_lowercase();
        plane
            .create_nodes(&[NodeSpec::ready(&name)])
            .expect("a node");
        each(&uma, &name, &USER);
        each(&hugo, &name, &HOLDER);
        each(&ada, &name, &ADMINISTRATOR);
        // Others have an expired lock, a lock and a hold.
        uma.succeeds(&["acquire", &name, "--duration", "1s"]);
        let wait = [
            "acquire",
            &name,
            "--wait",
            "--timeout",
            "1m",
            "--take-expired",
        ];
        hugo.succeeds(&wait);
        hugo.succeeds(&["release", &name]);
        uma.succeeds(&["acquire", &name]);
        ada.succeeds(&["release", &name, "--force", "--yes", "-m", "uma left"]);
        fence(
            &cluster,
            &fay,
            &format!("verbs-fenced-{mode:?}").to_lowercase(),
        );
        forge(&cluster, mode);
    }
    assert_eq!(cluster.failures("verbs-"), [Value::Null; 0]);
}
