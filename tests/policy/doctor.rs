//! The findings and hints of `doctor`.

use control_plane::{ControlPlane, NodeSpec, Rule, is_left_out};
use serde_json::{Value, json};

use crate::support::{
    ADMINISTRATORS, BINDINGS, Dates, LEASES, NODES, Person, Run, USERS, admin, admitted, at,
    await_denial, denying, person, wait_until,
};

/// The lines about one check.
fn lines(run: &Run, check: &str) -> String {
    let mut lines = run
        .stdout
        .lines()
        .skip_while(|line| line.get(9..24).is_none_or(|line| line.trim_end() != check));
    let first = lines.next().unwrap_or_else(|| panic!("{check}: {run:?}"));
    let hints = lines.take_while(|line| line.starts_with("    "));
    let all: Vec<&str> = [first].into_iter().chain(hints).map(str::trim).collect();
    all.join("\n")
}

#[test]
fn problems_are_named_with_what_to_do() {
    if is_left_out() {
        return;
    }
    let builder = ControlPlane::builder().controller_manager(false);
    let plane = builder.start().expect("a control plane");
    let _logs = plane.keep_logs_on_panic("doctor");
    let admin = admin(&plane);
    let doctor = |by: &Person, code: i32| {
        let run = by.maint(&["doctor"]);
        assert_eq!((run.code, &*run.stderr), (code, ""), "{run:?}");
        run
    };
    let nobody = person(&plane, "nobody", &[]);
    let run = doctor(&nobody, 1);
    assert_eq!(
        lines(&run, "rights"),
        "problem  rights         you may not get leases, list leases, watch leases, create leases, patch leases, \
         get nodes, list nodes, watch nodes\nask an administrator for these \
         permissions; `kubectl maint install` creates the roles (deploy/rbac.yaml)"
    );
    let nothing = nobody.maint(&["doctor", "-o", "jsonpath={.nosuch}"]);
    assert_eq!((nothing.code, &*nothing.stdout), (1, ""), "{nothing:?}");
    let user = lines(&run, "user");
    assert!(
        user.starts_with("ok       user           API user nobody; holder of your locks: "),
        "{user}"
    );
    assert_eq!(
        lines(&run, "namespace"),
        "note     namespace      you may not read namespaces\nan administrator can check with \
         `kubectl maint doctor`"
    );
    assert_eq!(
        lines(&run, "policies"),
        "note     policies       you may not see the policies\nan administrator can check with \
         `kubectl maint doctor`"
    );
    let run = doctor(&admin, 1);
    assert_eq!(
        lines(&run, "namespace"),
        "problem  namespace      kube-node-maintenance does not exist\ncreate it with \
         `kubectl maint install`, or, without the policies, with `kubectl create namespace \
         kube-node-maintenance`"
    );
    for policy in ["lease policy", "node policy"] {
        assert_eq!(
            lines(&run, policy),
            format!("note     {policy:<15}not installed\nto install it: `kubectl maint install`")
        );
    }
    assert_eq!(
        lines(&run, "clock"),
        "ok       clock          the local clock agrees with the API server"
    );

    admin.succeeds(&["install"]);
    let run = doctor(&admin, 0);
    assert_eq!(
        lines(&run, "namespace"),
        "ok       namespace      kube-node-maintenance"
    );
    assert_eq!(
        lines(&run, "release"),
        "ok       release        the policies and this plugin are of the same release"
    );
    for policy in ["lease policy", "node policy"] {
        assert_eq!(
            lines(&run, policy),
            format!(
                "note     {policy:<15}audit: nothing is refused; no write broke a rule since this API server started\n\
                 to refuse such writes: `kubectl maint enforce deny`"
            )
        );
    }
    let wrong = json!({
        "metadata": {"generateName": "wrong-"}, "spec": {"renewTime": "2000-01-01T00:00:00.000000Z"},
    });
    wait_until("it is counted", || {
        admitted(admin.post(LEASES, &wrong), "in audit mode");
        let found = lines(&admin.maint(&["doctor"]), "lease policy");
        let begin = "note     lease policy   audit: nothing is refused; ";
        let count = found.strip_prefix(begin).expect("the mode");
        let (count, rest) = count.split_once(' ').expect("a count");
        count.parse().is_ok_and(|count: u32| count >= 1)
            && rest.contains("since this API server started\nto see which requests, search the audit log for the annotation ")
    });
    // A user who may read the policies may have no right to read the metrics.
    let group = "admissionregistration.k8s.io";
    let kinds = [
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
    ];
    let rights = [Rule::new(group, &kinds, &["get"])];
    plane.grant("mia", &rights).expect("rights");
    let mia = person(&plane, "mia", &[USERS]);
    let run = doctor(&mia, 0);
    assert_eq!(
        lines(&run, "policies"),
        "note     policies       you may not read the metrics of the API server, so broken rules were not counted\nan \
         administrator can check with `kubectl maint doctor`"
    );
    assert!(
        lines(&run, "lease policy")
            .starts_with("note     lease policy   audit: nothing is refused\n"),
        "{run:?}"
    );
    let uma = person(&plane, "uma", &[USERS]);
    let node = json!({"metadata": {"name": "checked"}});
    admitted(admin.post(NODES, &node), "a node");
    admin.succeeds(&["enforce", "warn"]);
    wait_until("it warns", || {
        let warned = admin.maint(&["acquire", "checked", "--holder", "x", "--dry-run"]);
        warned.code == 0
    });
    // The dry runs of `doctor` break rules, and must not print warnings.
    doctor(&uma, 0);
    admin.succeeds(&["enforce", "deny"]);
    await_denial(&admin, true);
    let run = doctor(&admin, 0);
    for policy in ["lease policy", "node policy"] {
        assert_eq!(
            lines(&run, policy),
            format!("ok       {policy:<15}deny: a write that breaks a rule was refused")
        );
    }
    let run = doctor(&uma, 0);
    assert_eq!(
        lines(&run, "rights"),
        "ok       rights         you may acquire, renew and release locks, but not hold nodes or take over locks in deny mode"
    );
    assert_eq!(
        lines(&run, "policies"),
        "ok       policies       a write that breaks a rule was refused"
    );
    let ada = person(&plane, "ada", &[ADMINISTRATORS]);
    assert_eq!(
        lines(&ada.maint(&["doctor"]), "rights"),
        "ok       rights         you may acquire, renew and release locks, hold nodes in deny mode (right \"hold\"), \
         take over locks in deny mode (right \"takeover\")"
    );

    admin.succeeds(&["enforce", "off"]);
    assert_eq!(
        lines(&doctor(&admin, 0), "lease policy"),
        "note     lease policy   switched off\nto switch it on: `kubectl maint enforce audit`"
    );
    admin.succeeds(&["enforce", "deny"]);
    await_denial(&admin, true);

    // Policies with our names that check nothing.
    for (policy, check) in [
        ("kubectl-maint-leases", "lease policy"),
        ("kubectl-maint-nodes", "node policy"),
    ] {
        let path = format!(
            "{}/{policy}",
            BINDINGS.replace("policybindings", "policies")
        );
        let nothing = json!({"spec": {"validations": [{"expression": "true"}]}});
        admitted(admin.patch(&path, &nothing), "another rule");
        let broken = format!(
            "problem  {check:<15}deny, but a write that breaks a rule was admitted\n\
             install it again: `kubectl maint install`"
        );
        wait_until("it takes effect", || {
            let run = admin.maint(&["doctor"]);
            run.code == 1 && lines(&run, check) == broken
        });
    }
    let release = lines(&doctor(&admin, 1), "release");
    assert!(
        release.starts_with(
            "note     release        these objects are from another release, or were edited: "
        ),
        "{release}"
    );
}

/// Several servers answer, as behind a load balancer. A difference of 1 s is harmless for locks.
#[test]
fn servers_whose_clocks_disagree_are_reported() {
    let Some(plane) = denying() else { return };
    let admin = admin(plane);
    for apart in [-1, 1] {
        let run = admin.maint_at(plane, Dates::EverySecond(apart), &["doctor"]);
        let found = lines(&run, "clock");
        assert!(!found.contains("disagree"), "{run:?}");
    }
    for apart in [-600, 600] {
        let run = admin.maint_at(plane, Dates::EverySecond(apart), &["doctor"]);
        let found = lines(&run, "clock");
        let begin = "problem  clock          the API server's Date headers differ by ";
        let end = ": several servers or a proxy disagree about the time. The earliest decides what has expired\n\
                   synchronize the clocks, for example with NTP";
        assert!(found.starts_with(begin) && found.ends_with(end), "{run:?}");
        let by = &found[begin.len()..found.len() - end.len()];
        assert!(["9m", "10m"].iter().any(|age| by.starts_with(age)), "{by}");
        assert_eq!(run.code, 1, "{run:?}");
        let calm = admin.maint_at(plane, Dates::All(apart), &["doctor"]);
        assert!(!lines(&calm, "clock").contains("disagree"), "{calm:?}");
    }
}

#[test]
fn locks_of_other_tools_are_shown() {
    if is_left_out() {
        return;
    }
    let builder = ControlPlane::builder().controller_manager(false);
    let plane = builder.start().expect("a control plane");
    let _logs = plane.keep_logs_on_panic("doctor-other-locks");
    let admin = admin(&plane);
    let found = || lines(&admin.maint(&["doctor"]), "other locks");
    let none = "ok       other locks    neither kured nor medik8s holds a lock";
    assert_eq!(found(), none);

    let label = json!({"name": "kured"});
    let containers = json!([{"name": "kured", "image": "kured"}]);
    let kured = json!({
        "metadata": {"name": "kured"},
        "spec": {
            "selector": {"matchLabels": label},
            "template": {"metadata": {"labels": label}, "spec": {"containers": containers}},
        },
    });
    let daemon_sets = "/apis/apps/v1/namespaces/kube-system/daemonsets";
    admitted(admin.post(daemon_sets, &kured), "kured");
    assert_eq!(found(), none);
    let lock = json!({
        "nodeID": "worker-1", "metadata": {"unschedulable": false}, "created": at(-10 * 86_400), "TTL": 0,
    });
    let annotated = json!({"metadata": {"annotations": {
        "weave.works/kured-node-lock": lock.to_string(),
    }}});
    let path = format!("{daemon_sets}/kured");
    admitted(admin.patch(&path, &annotated), "its lock");
    assert_eq!(
        found(),
        "note     other locks    kured holds its lock for worker-1 (10d)\nif kured is not rebooting these nodes, remove its lock: `kubectl -n \
         kube-system annotate daemonset kured weave.works/kured-node-lock-`"
    );
    let release = ["-n", "kube-system", "annotate", "daemonset", "kured"];
    let release = [&release[..], &["weave.works/kured-node-lock-"]].concat();
    plane.kubectl(&release).expect("the hint works");
    assert_eq!(found(), none);

    let namespace = json!({"metadata": {"name": "medik8s-leases"}});
    admitted(admin.post("/api/v1/namespaces", &namespace), "a namespace");
    let lease = json!({
        "metadata": {"name": "node-worker-2"},
        "spec": {
            "holderIdentity": "node-maintenance", "acquireTime": at(0), "renewTime": at(0),
            "leaseDurationSeconds": 3600,
        },
    });
    let leases = "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases";
    admitted(admin.post(leases, &lease), "a Lease");
    assert_eq!(
        found(),
        "note     other locks    medik8s has a Lease for worker-2 (node-maintenance)\nto see when it expires: `kubectl maint \
         leases -n medik8s-leases`"
    );
    let nobody = person(&plane, "nobody", &[]);
    let run = nobody.maint(&["doctor"]);
    assert_eq!(
        lines(&run, "other locks"),
        "note     other locks    you may not read the DaemonSet of kured, which has its lock\nan administrator \
         can check with `kubectl maint doctor`"
    );
}

/// JSON output has the same findings.
#[test]
fn findings_are_printed_as_data() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("doctor-json");
    let uma = person(plane, "uma", &[USERS]);
    let run = uma.maint(&["doctor", "-o", "json"]);
    let list: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(list["kind"], "CheckupList", "{run:?}");
    let items = list["items"].as_array().expect("items");
    let policies = items.iter().find(|item| item["check"] == "Policies");
    let policies = policies.expect("the policies");
    assert_eq!(policies["level"], "Ok", "{run:?}");
    assert_eq!(
        policies["message"],
        "a write that breaks a rule was refused"
    );
}

#[test]
fn leases_without_managed_fields_are_repaired() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("doctor-fix");
    let node = "doctor-fix";
    plane
        .create_nodes(&[NodeSpec::ready(node)])
        .expect("a node");
    let uma = person(plane, "uma", &[USERS]);
    let empty = json!({"metadata": {"name": node}});
    admitted(uma.post(LEASES, &empty), "a lease without fields");
    let refused = uma.maint(&["acquire", node, "--holder", "uma"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    let hint = "(maint-untracked)\nhint: repair its Lease with `kubectl maint doctor --fix --holder uma`\n";
    assert!(refused.stderr.ends_with(hint), "{refused:?}");
    let found = uma.maint(&["doctor"]);
    assert!(lines(&found, "leases").contains(node), "{found:?}");
    let fixed = uma.maint(&["doctor", "--fix"]);
    let repaired = lines(&fixed, "leases");
    assert!(
        repaired.starts_with("ok       leases         repaired: "),
        "{fixed:?}"
    );
    assert!(repaired.contains(node), "{fixed:?}");
    let again = uma.maint(&["doctor"]);
    assert!(!lines(&again, "leases").contains(node), "{again:?}");
    uma.succeeds(&["acquire", node, "--holder", "uma"]);
}
