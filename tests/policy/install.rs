//! `install`, `enforce` and `uninstall`. Each test has its own control plane, because these commands affect all
//! requests. Also how to switch the policies off without the plugin.

use std::io::Write as _;
use std::process::{Command, Stdio};

use control_plane::{ControlPlane, NodeSpec, Rule, is_left_out};
use serde_json::{Value, json};

use crate::support::{
    ADMINISTRATORS, BINDINGS, End, LEASES, NODES, Person, USERS, admin, admitted, await_denial,
    manifest, person, refused_by, run, wait_until,
};

const LEASE_BINDING: &str = "kubectl-maint-leases";

fn plane() -> Option<ControlPlane> {
    if is_left_out() {
        return None;
    }
    let builder = ControlPlane::builder().controller_manager(false);
    Some(builder.start().expect("a control plane"))
}

fn actions(admin: &Person) -> Value {
    let binding = admin.get(&format!("{BINDINGS}/{LEASE_BINDING}"));
    binding["spec"]["validationActions"].clone()
}

/// The output of `enforce` without a mode.
fn shown(admin: &Person) -> String {
    admin.succeeds(&["enforce"]).stdout
}

/// A line with this text for each policy.
fn both(says: &str) -> String {
    format!("kubectl-maint-leases: {says}\nkubectl-maint-nodes: {says}\n")
}

/// Applies the output of `install -o yaml` with kubectl and these flags.
fn apply_printed(plane: &ControlPlane, admin: &Person, flags: &[&str]) {
    let printed = admin.succeeds(&["install", "-o", "yaml"]).stdout;
    let mut kubectl = plane.kubectl_command().expect("kubectl");
    let mut child = kubectl
        .args(["apply", "-f", "-"])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("kubectl");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(printed.as_bytes()).expect("kubectl reads");
    drop(stdin);
    assert!(child.wait().expect("it ends").success());
}

/// The objects with our label, in kubectl's notation.
fn ours(plane: &ControlPlane) -> Vec<String> {
    let kinds = "namespaces,clusterroles,clusterrolebindings,roles,rolebindings,flowschemas,\
                 validatingadmissionpolicies,validatingadmissionpolicybindings";
    let all = [
        "get",
        kinds,
        "-A",
        "-o",
        "name",
        "-l",
        "app.kubernetes.io/name=kubectl-maint",
    ];
    let names = plane.kubectl(&all).expect("a list");
    names.lines().map(ToOwned::to_owned).collect()
}

/// The line of this docs page that begins with `begin`.
fn documented_line(page: &str, begin: &str) -> String {
    let path = format!("{}/{page}", env!("CARGO_MANIFEST_DIR"));
    let docs = std::fs::read_to_string(path).expect("the page");
    let line = docs.lines().find(|line| line.starts_with(begin));
    line.expect("the line").to_owned()
}

#[test]
fn printed_objects_are_those_of_deploy_and_need_no_server() {
    let printed = run(Command::new(env!("CARGO_BIN_EXE_kubectl-maint"))
        .args(["install", "-o", "yaml"])
        .env_clear());
    assert_eq!((printed.code, &*printed.stderr), (0, ""));
    let files = [
        "namespace.yaml",
        "rbac.yaml",
        "flow-schema.yaml",
        "lease-policy.yaml",
        "node-policy.yaml",
        "pod-policy.yaml",
    ];
    let texts = files.map(|name| std::fs::read_to_string(manifest(name)).expect("a file"));
    assert_eq!(printed.stdout, texts.join("---\n"));
}

#[test]
fn installed_policies_keep_their_mode_until_they_are_removed() {
    let Some(plane) = plane() else { return };
    let _logs = plane.keep_logs_on_panic("install");
    let admin = admin(&plane);
    let program = "kubectl maint";
    assert_eq!(shown(&admin), both("not installed"));
    let missing = admin.maint(&["enforce", "deny"]);
    assert_eq!(missing.code, 1, "{missing:?}");
    assert_eq!(
        missing.stderr,
        format!(
            "error: the policies are not installed\nhint: install them first: `{program} install`\n"
        )
    );

    let installed = admin.succeeds(&["install"]);
    assert_eq!(actions(&admin), json!(["Audit"]));
    let mut applied: Vec<&str> = installed.stdout.lines().collect();
    applied.sort_unstable();
    let mut expected = ours(&plane);
    for name in &mut expected {
        name.push_str(" created");
    }
    expected.sort_unstable();
    assert_eq!(applied, expected);
    assert_eq!(
        installed.stderr,
        format!(
            "hint: the policies are in audit mode and refuse nothing. Put people into the groups \
             kubectl-maint:viewers, :users, :holders, :fencers, :operators and :administrators, then run `{program} \
             enforce warn`\n"
        )
    );
    await_denial(&admin, false);
    assert_eq!(shown(&admin), both("audit"));
    let warns = || admin.get(&format!("{BINDINGS}/kubectl-maint-pods"))["spec"].clone();
    assert_eq!(warns()["validationActions"], json!(["Warn"]));

    let warned = admin.succeeds(&["enforce", "warn"]);
    assert_eq!(warned.stdout, both("warn (was audit)"));
    assert_eq!(actions(&admin), json!(["Warn", "Audit"]));
    let denied = admin.succeeds(&["enforce", "deny"]);
    assert_eq!(
        denied.stderr,
        "the policies are in deny mode: writes that break a rule are refused\n"
    );
    await_denial(&admin, true);
    let again = admin.succeeds(&["enforce", "deny"]);
    assert_eq!(again.stdout, both("deny (unchanged)"));
    // An upgrade keeps the mode.
    let upgraded = admin.succeeds(&["install"]);
    assert_eq!(upgraded.stderr, "");
    assert!(
        upgraded
            .stdout
            .lines()
            .all(|line| line.ends_with(" unchanged")),
        "{upgraded:?}"
    );
    assert_eq!(actions(&admin), json!(["Deny", "Audit"]));

    let off = admin.succeeds(&["enforce", "off"]);
    assert_eq!(off.stdout, both("off (was deny)"));
    let says = format!(
        "the policies are off: nothing is checked; to switch them on again, run `{program} enforce audit`\n"
    );
    assert_eq!(off.stderr, says);
    await_denial(&admin, false);
    assert_eq!(shown(&admin), both("off"));
    assert_eq!(
        warns()["validationActions"],
        json!(["Warn"]),
        "it has no mode"
    );
    let again = admin.succeeds(&["install"]);
    let hint = format!(
        "hint: the policies stay switched off; to switch them on, run `{program} enforce audit`\n"
    );
    assert_eq!(again.stderr, hint);
    admin.succeeds(&["enforce", "off"]);
    admin.succeeds(&["enforce", "deny"]);
    await_denial(&admin, true);
    let warning = "validatingadmissionpolicybinding/kubectl-maint-pods";
    plane.kubectl(&["delete", warning]).expect("it is there");
    admin.succeeds(&["install"]);
    let bindings = plane.kubectl(&["get", "validatingadmissionpolicybinding", "-o", "name"]);
    let bindings = bindings.expect("a list");
    assert!(!bindings.contains("kubectl-maint-pods"), "{bindings}");

    let nodes = [NodeSpec::ready("kept")];
    plane.create_nodes(&nodes).expect("a node");
    let uma = person(&plane, "uma", &[USERS]);
    uma.succeeds(&["acquire", "kept", "-m", "stays"]);
    let refused = admin.maint(&["uninstall"]);
    assert_eq!(refused.code, 6, "{refused:?}");
    // The lock set nothing on its Node.
    let locked = "1 node is locked or on hold. The lock stays";
    assert!(refused.stderr.contains(locked), "{refused:?}");
    let removed = admin.succeeds(&["uninstall", "--yes"]);
    let first: Vec<&str> = removed.stdout.lines().take(2).collect();
    assert!(
        first
            .iter()
            .all(|line| line.contains("binding") && line.ends_with(" deleted")),
        "{removed:?}"
    );
    assert_eq!(ours(&plane), ["namespace/kube-node-maintenance"]);
    assert_eq!(
        admin.get(&format!("{LEASES}/kept"))["metadata"]["name"],
        "kept"
    );
    let nothing = admin.succeeds(&["uninstall", "--yes"]);
    assert_eq!(nothing.stdout, "");
}

/// A policy without its binding was switched off, and stays off.
#[test]
fn an_installation_that_was_cut_off_is_finished_by_the_next_one() {
    let Some(plane) = plane() else { return };
    let _logs = plane.keep_logs_on_panic("install-cut");
    let admin = admin(&plane);
    let policies = [
        "kubectl-maint-leases",
        "kubectl-maint-nodes",
        "kubectl-maint-pods",
    ];
    let mut writes = 0;
    while let End::Killed = admin.killed_after_policies(&plane, writes, &["install"]) {
        let again = admin.succeeds(&["install"]);
        assert!(
            !again.stderr.contains("switched off"),
            "{writes}: {again:?}"
        );
        for policy in policies {
            let binding = admin.get(&format!("{BINDINGS}/{policy}"));
            let actions = &binding["spec"]["validationActions"];
            let mode = if policy.ends_with("pods") {
                "Warn"
            } else {
                "Audit"
            };
            assert_eq!(actions, &json!([mode]), "{writes}");
        }
        assert_eq!(shown(&admin), both("audit"), "{writes}");
        admin.succeeds(&["uninstall", "--yes"]);
        writes += 1;
    }
    assert_eq!(writes, 6, "three policies with their bindings");
}

#[test]
fn objects_of_another_tool_are_left_alone() {
    let Some(plane) = plane() else { return };
    let _logs = plane.keep_logs_on_panic("managed");
    let admin = admin(&plane);
    let argo = ["--server-side", "--field-manager=argocd-controller"];
    apply_printed(&plane, &admin, &argo);

    let before = admin.get(BINDINGS);
    for (arguments, object) in [
        (
            &["install"][..],
            "clusterrole.rbac.authorization.k8s.io/kubectl-maint-viewer",
        ),
        (
            &["uninstall", "--yes"],
            "clusterrole.rbac.authorization.k8s.io/kubectl-maint-viewer",
        ),
        (
            &["enforce", "deny"],
            "validatingadmissionpolicy.admissionregistration.k8s.io/kubectl-maint-leases",
        ),
    ] {
        let stopped = admin.maint(arguments);
        assert_eq!((stopped.code, &*stopped.stdout), (6, ""), "{stopped:?}");
        let says =
            format!("error: {object} is managed by argocd-controller; nothing was changed\n");
        assert!(stopped.stderr.starts_with(&says), "{stopped:?}");
    }
    let after = admin.get(BINDINGS);
    assert_eq!(after["items"], before["items"]);
    // In an emergency, `enforce off` works even if another tool manages the bindings.
    let off = admin.succeeds(&["enforce", "off"]);
    assert_eq!(off.stdout, both("off (was audit)"));
    let warning = "Warning: argocd-controller manages the bindings and may create them again; pause it, or remove \
                   them there\n";
    let after = off.stderr.strip_prefix(&warning.repeat(2));
    let says = "the policies are off: nothing is checked; ";
    assert!(
        after.is_some_and(|after| after.starts_with(says)),
        "{off:?}"
    );
}

#[test]
fn objects_applied_by_kubectl_can_be_enforced_and_installed_again() {
    let Some(plane) = plane() else { return };
    let _logs = plane.keep_logs_on_panic("kubectl-applied");
    let admin = admin(&plane);
    for flags in [&[][..], &["--server-side"]] {
        apply_printed(&plane, &admin, flags);
        let warned = admin.succeeds(&["enforce", "warn"]);
        assert_eq!(warned.stdout, both("warn (was audit)"));
        admin.succeeds(&["install"]);
        assert_eq!(actions(&admin), json!(["Warn", "Audit"]), "its mode stays");
        let off = admin.succeeds(&["enforce", "off"]);
        assert_eq!(off.stdout, both("off (was warn)"));
        assert!(!off.stderr.contains("Warning"), "{off:?}");
        admin.succeeds(&["uninstall", "--yes"]);
    }
    // If an administrator removed the warning, an upgrade does not install it again.
    admin.succeeds(&["install"]);
    let warning = "validatingadmissionpolicybinding/kubectl-maint-pods";
    plane.kubectl(&["delete", warning]).expect("it is there");
    assert_eq!(admin.succeeds(&["install"]).stderr, "");
    assert!(plane.kubectl(&["get", warning]).is_err());
    // Changes that somebody made are not overwritten.
    let path = format!(
        "{}/kubectl-maint-leases",
        BINDINGS.replace("policybindings", "policies")
    );
    let edited = json!({"spec": {"failurePolicy": "Ignore"}});
    let edited = admin.send(
        http::Method::PATCH,
        &format!("{path}?fieldManager=kubectl-edit"),
        crate::support::MERGE,
        &edited,
    );
    admitted(edited, "an edit");
    let stopped = admin.maint(&["install"]);
    assert_eq!(stopped.code, 6, "{stopped:?}");
    let hint = "hint: to overwrite those changes: `kubectl maint install -o yaml | kubectl apply --server-side \
                --force-conflicts --field-manager=kubectl-maint-install -f -`; then set the mode again with \
                `kubectl maint enforce MODE`, and --allow-user and --allow-group with `kubectl maint install`\n";
    assert!(stopped.stderr.ends_with(hint), "{stopped:?}");
    assert_eq!(admin.get(&path)["spec"]["failurePolicy"], "Ignore");
    let objects = tempfile::NamedTempFile::new().expect("a file");
    let yaml = admin.succeeds(&["install", "-o", "yaml"]).stdout;
    std::fs::write(objects.path(), yaml).expect("a file");
    let file = objects.path().to_str().expect("a path");
    let apply = ["apply", "--server-side", "--force-conflicts"];
    let as_install = ["--field-manager=kubectl-maint-install", "-f", file];
    plane
        .kubectl(&[&apply[..], &as_install].concat())
        .expect("applied");
    admin.succeeds(&["install"]);
    assert_eq!(admin.get(&path)["spec"]["failurePolicy"], "Fail");
}

/// An apply keeps fields that others added. `install` must not report success then.
#[test]
fn a_policy_that_somebody_restricted_is_found_and_can_be_repaired() {
    let Some(plane) = plane() else { return };
    let _logs = plane.keep_logs_on_panic("restricted");
    let admin = admin(&plane);
    admin.succeeds(&["install"]);
    let release = || {
        let doctor = admin.maint(&["doctor"]).stdout;
        let is_release = |line: &&str| line.split_whitespace().nth(1) == Some("release");
        let release = doctor.lines().find(is_release);
        release.expect("a line about the release").to_owned()
    };
    assert!(release().starts_with("ok "), "{}", release());
    let selector = json!({"objectSelector": {"matchLabels": {"a": "b"}}});
    let never = json!([{"name": "never", "expression": "false"}]);
    for (kind, field, value) in [
        (
            "validatingadmissionpolicybinding",
            "matchResources",
            selector,
        ),
        ("validatingadmissionpolicy", "matchConditions", never),
    ] {
        let name = format!("{kind}.admissionregistration.k8s.io/kubectl-maint-leases");
        let edit = json!({"spec": {field: value}}).to_string();
        let patched = plane.kubectl(&["patch", &name, "--type=merge", "-p", &edit]);
        patched.expect("an edit");
        assert!(release().ends_with(&name), "{}", release());
        let stopped = admin.maint(&["install"]);
        assert_eq!((stopped.code, &*stopped.stdout), (6, ""), "{stopped:?}");
        let removal = format!(r#"[{{"op":"remove","path":"/spec/{field}"}}]"#);
        let said = format!(
            "error: spec.{field} of {name} was edited, so its policy may not check every write; nothing was changed\n\
             hint: to remove it: `kubectl patch {name} --type=json -p '{removal}'`; then run `kubectl maint install` again\n"
        );
        assert_eq!(stopped.stderr, said);
        let repaired = plane.kubectl(&["patch", &name, "--type=json", "-p", &removal]);
        repaired.expect("the command of the hint");
        admin.succeeds(&["install"]);
        assert!(release().starts_with("ok "), "{}", release());
    }
}

/// In an emergency, the command must not end while writes are still refused.
#[test]
fn a_mode_that_refuses_nothing_takes_effect_before_the_command_ends() {
    let Some(plane) = plane() else { return };
    let _logs = plane.keep_logs_on_panic("relaxed");
    let admin = admin(&plane);
    admin.succeeds(&["install"]);
    plane
        .create_nodes(&[NodeSpec::ready("urgent"), NodeSpec::ready("other")])
        .expect("nodes");
    let uma = person(&plane, "uma", &[USERS]);
    let label = json!({"metadata": {"labels": {"kubectl-maint.dev/held": "x"}}});
    let label = || admin.patch(&format!("{NODES}/other?dryRun=All"), &label);
    for mode in ["audit", "warn"] {
        for holder in ["x", "y"] {
            admin.succeeds(&["enforce", "deny"]);
            refused_by("maint-held-user", &label(), "the node policy follows, too");
            let hold = ["hold", "urgent", "-m", "fire", "--holder", holder];
            let refused = uma.maint(&hold);
            assert_eq!(refused.code, 1, "{refused:?}");
            let relaxed = admin.succeeds(&["enforce", mode]);
            admitted(label(), "the node policy follows, too");
            let held = uma.maint(&hold);
            assert_eq!(held.code, 0, "{held:?}");
            let says = format!("the policies are in {mode} mode: nothing is refused; ");
            assert!(relaxed.stderr.starts_with(&says), "{relaxed:?}");
            let ended = uma.maint(&["unhold", "urgent", "--holder", holder]);
            assert_eq!(ended.code, 0, "{ended:?}");
        }
    }
    // The server updates each policy separately.
    let node = format!("{NODES}/urgent?dryRun=All");
    let forged = json!({"metadata": {"labels": {"kubectl-maint.dev/held": "true"}}});
    for _ in 0..4 {
        admin.succeeds(&["enforce", "deny"]);
        refused_by("maint-held-user", &admin.patch(&node, &forged), "enforced");
        admin.succeeds(&["enforce", "off"]);
        admitted(admin.patch(&node, &forged), "switched off");
    }
}

/// A node whose lock stays also stays cordoned: pods are not expected there during maintenance.
#[test]
fn an_uninstallation_leaves_nothing_on_nodes() {
    let Some(plane) = plane() else { return };
    let _logs = plane.keep_logs_on_panic("uninstall-nodes");
    let admin = admin(&plane);
    admin.succeeds(&["install"]);
    admin.succeeds(&["enforce", "deny"]);
    let names = ["held", "ended", "expired", "free"];
    let nodes = names.map(NodeSpec::ready);
    plane.create_nodes(&nodes).expect("nodes");
    let hold = |node| admin.succeeds(&["hold", node, "-m", "disk", "--cordon", "--holder", "ada"]);
    hold("held");
    hold("ended");
    admin.succeeds(&["unhold", "ended", "--holder", "ada"]);
    hold("expired");
    admitted(admin.delete(&format!("{LEASES}/expired")), "a lost Lease");
    let own = json!({"metadata": {"annotations": {"example.com/own": "kept"}}});
    admitted(
        admin.patch(&format!("{NODES}/held"), &own),
        "another's annotation",
    );

    let refused = admin.maint(&["uninstall"]);
    assert_eq!(refused.code, 6, "{refused:?}");
    let removed = admin.succeeds(&["uninstall", "--yes"]);
    let line = "node/held: removed kubectl-maint.dev/held=ada, ";
    assert!(removed.stdout.contains(line), "{removed:?}");
    assert!(!removed.stdout.contains("node/ended"), "{removed:?}");
    for (node, cordoned) in names.into_iter().zip([true, false, false, false]) {
        let found = admin.get(&format!("{NODES}/{node}"));
        for map in ["labels", "annotations"] {
            let keys = found["metadata"][map].as_object().into_iter().flatten();
            let ours = keys.filter(|(key, _)| {
                let ours = ["kubectl-maint", "cluster-autoscaler", "remediation"];
                ours.iter().any(|prefix| key.starts_with(prefix))
            });
            assert_eq!(ours.count(), 0, "{found:?}");
        }
        assert_eq!(found["spec"]["unschedulable"] == true, cordoned, "{node}");
    }
    let held = admin.get(&format!("{NODES}/held"));
    assert_eq!(held["metadata"]["annotations"]["example.com/own"], "kept");
    // The lock stays, and its end still uncordons the node.
    let lease = admin.get(&format!("{LEASES}/held"));
    assert_eq!(lease["spec"]["holderIdentity"], "kubeadm:ada");
    admin.succeeds(&["unhold", "held", "--holder", "ada"]);
    let held = admin.get(&format!("{NODES}/held"));
    assert_eq!(held["spec"]["unschedulable"], Value::Null);

    // Keys that a hold left while no policy was installed are also removed.
    hold("free");
    admin.succeeds(&["uninstall", "--yes"]);
    let free = admin.get(&format!("{NODES}/free"));
    assert_eq!(
        free["metadata"]["labels"]["kubectl-maint.dev/held"],
        Value::Null
    );
    let nothing = admin.succeeds(&["uninstall", "--yes"]);
    assert_eq!(nothing.stderr, "nothing is installed\n");
}

/// The users and groups in the lists of the node policy.
#[test]
fn listed_users_and_groups_count_as_the_holder_and_stay_through_upgrades() {
    let Some(plane) = plane() else { return };
    let _logs = plane.keep_logs_on_panic("allowed");
    let admin = admin(&plane);
    let nodes = Rule::new("", &["nodes"], &["get", "patch"]);
    for name in ["fay", "rob", "sue"] {
        plane
            .grant(name, std::slice::from_ref(&nodes))
            .expect("rights");
    }
    let [fay, rob, sue] = [("fay", "fleet"), ("rob", "other"), ("sue", "other")]
        .map(|(name, group)| person(&plane, name, &[group]));
    admin.succeeds(&["install", "--allow-group=fleet", "--allow-user=rob"]);
    admin.succeeds(&["enforce", "deny"]);
    await_denial(&admin, true);
    plane
        .create_nodes(&[NodeSpec::ready("listed")])
        .expect("a node");
    admin.succeeds(&["hold", "listed", "-m", "disk", "--holder", "ada"]);
    let cordon = json!({"spec": {"unschedulable": true}});
    let cordons = |by: &Person| by.patch(&format!("{NODES}/listed?dryRun=All"), &cordon);
    let expect = |allowed: &[&Person], refused: &[&Person]| {
        for by in allowed {
            admitted(cordons(by), &by.name);
        }
        for by in refused {
            refused_by("maint-held-cordon", &cordons(by), &by.name);
        }
    };
    expect(&[&fay, &rob], &[&sue]);
    // An upgrade keeps both lists, and does not count as another release.
    let again = admin.succeeds(&["install"]);
    let unchanged = |line: &str| line.ends_with(" unchanged");
    assert!(again.stdout.lines().all(unchanged), "{again:?}");
    let doctor = admin.succeeds(&["doctor"]);
    let same = "the policies and this plugin are of the same release";
    assert!(doctor.stdout.contains(same), "{doctor:?}");
    admin.succeeds(&["install", "--allow-user="]);
    wait_until("it takes effect", || cordons(&rob).is_err());
    expect(&[&fay], &[&rob, &sue]);
}

/// Each policy is tried, and the output has the result for each.
#[test]
fn a_mode_that_is_half_set_is_reported_policy_by_policy() {
    let Some(plane) = plane() else { return };
    let _logs = plane.keep_logs_on_panic("half-set");
    let admin = admin(&plane);
    admin.succeeds(&["install"]);
    let group = "admissionregistration.k8s.io";
    let kinds = [
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
    ];
    let patch = Rule::new(group, &kinds[1..], &["patch", "delete"]);
    let patch = patch.named(&["kubectl-maint-nodes"]);
    let rights = [Rule::new(group, &kinds, &["get"]), patch];
    plane.grant("nora", &rights).expect("rights");
    let nora = person(&plane, "nora", &[]);
    let half = nora.maint(&["enforce", "warn"]);
    assert_eq!(half.code, 1, "{half:?}");
    assert_eq!(half.stdout, "kubectl-maint-nodes: warn (was audit)\n");
    let says = "Error from server (Forbidden): validatingadmissionpolicybindings.admissionregistration.k8s.io \
                \"kubectl-maint-leases\" is forbidden: ";
    assert!(half.stderr.starts_with(says), "{half:?}");
    assert_eq!(
        shown(&nora),
        "kubectl-maint-leases: audit\nkubectl-maint-nodes: warn\n"
    );
}

#[test]
fn kubectl_alone_switches_the_policies_off() {
    let Some(plane) = plane() else { return };
    let _logs = plane.keep_logs_on_panic("switch-off");
    let admin = admin(&plane);
    admin.succeeds(&["install"]);
    admin.succeeds(&["enforce", "deny"]);
    // `enforce deny` ends only when the server refuses writes that break a rule, so doctor finds no problem.
    admin.succeeds(&["doctor"]);
    await_denial(&admin, true);
    admin.succeeds(&["enforce", "audit"]);
    let line = documented_line("docs/policies.md", "kubectl patch ");
    let words: Vec<&str> = line
        .split(' ')
        .skip(1)
        .map(|word| word.trim_matches('\''))
        .collect();
    plane.kubectl(&words).expect("the line works");
    await_denial(&admin, true);
    let line = documented_line(
        "docs/policies.md",
        "kubectl delete validatingadmissionpolicybinding",
    );
    let readme = documented_line(
        "README.md",
        "kubectl delete validatingadmissionpolicybinding",
    );
    assert_eq!(line, readme);
    let words: Vec<&str> = line.split(' ').skip(1).collect();
    plane.kubectl(&words).expect("the line works");
    await_denial(&admin, false);
    // The manifests contain the same line.
    let deployed = std::fs::read_to_string(manifest("lease-policy.yaml")).expect("a file");
    assert!(deployed.contains(&line), "{line}");

    // kubectl alone removes everything except the namespace, which contains the Leases.
    let removal = documented_line(
        "docs/upgrade.md",
        "kubectl delete --ignore-not-found -f deploy/",
    );
    let words: Vec<&str> = removal.split(' ').skip(1).collect();
    plane.kubectl(&words).expect("the line works");
    assert_eq!(ours(&plane), ["namespace/kube-node-maintenance"]);
}

#[test]
fn users_without_rights_install_nothing() {
    let Some(plane) = plane() else { return };
    let _logs = plane.keep_logs_on_panic("no-rights");
    let ada = person(&plane, "ada", &[ADMINISTRATORS]);
    for arguments in [
        &["install"][..],
        &["enforce"],
        &["enforce", "off"],
        &["uninstall", "--yes"],
    ] {
        let refused = ada.maint(arguments);
        assert_eq!(refused.code, 1, "{refused:?}");
        let says = "Error from server (Forbidden): ";
        assert!(refused.stderr.starts_with(says), "{refused:?}");
    }
    assert_eq!(ours(&plane), [""; 0]);
}

/// Only a dry run that the server admits proves that the policies no longer refuse writes.
#[test]
fn a_check_that_fails_is_no_proof_that_the_policies_are_off() {
    let Some(plane) = plane() else { return };
    let _logs = plane.keep_logs_on_panic("unchecked");
    let admin = admin(&plane);
    admin.succeeds(&["install"]);
    admin.succeeds(&["enforce", "deny"]);
    await_denial(&admin, true);
    let policies = [
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
    ];
    let kinds = [
        ("admissionregistration.k8s.io", &policies[..]),
        (
            "rbac.authorization.k8s.io",
            &[
                "clusterroles",
                "clusterrolebindings",
                "roles",
                "rolebindings",
            ],
        ),
        ("flowcontrol.apiserver.k8s.io", &["flowschemas"]),
    ];
    let rights = kinds.map(|(group, kinds)| match group {
        "admissionregistration.k8s.io" => Rule::new(group, kinds, &["get", "delete"]),
        _ => Rule::new(group, kinds, &["get"]),
    });
    plane.grant("paula", &rights).expect("rights");
    let paula = person(&plane, "paula", &[]);
    let run = paula.maint(&["enforce", "off"]);
    assert_eq!(run.code, 6, "{run:?}");
    let says = "error: the mode was changed, but the effect was not checked: Error from server (Forbidden): ";
    assert!(run.stderr.starts_with(says), "{run:?}");
    assert_eq!(run.stdout, both("off (was deny)"));
    admin.succeeds(&["enforce", "deny"]);
    await_denial(&admin, true);
    // A user without the right to delete all objects deletes none.
    let before = ours(&plane);
    let refused = paula.maint(&["uninstall", "--yes"]);
    assert_eq!((refused.code, &*refused.stdout), (1, ""), "{refused:?}");
    let says = "Error from server (Forbidden): ";
    assert!(refused.stderr.starts_with(says), "{refused:?}");
    let hint = "\nhint: ask a cluster administrator to run this command\n";
    assert!(refused.stderr.ends_with(hint), "{refused:?}");
    assert_eq!(ours(&plane), before);
    let rights = kinds.map(|(group, kinds)| Rule::new(group, kinds, &["get", "delete"]));
    plane.grant("pauline", &rights).expect("rights");
    let pauline = person(&plane, "pauline", &[]);
    let removed = pauline.maint(&["uninstall", "--yes"]);
    // This user can't read Nodes, so it is unknown whether something is left on them.
    assert_eq!(removed.code, 1, "{removed:?}");
    let says = "Warning: the bindings were deleted, but the effect was not checked: ";
    assert!(removed.stderr.contains(says), "{removed:?}");
    assert_eq!(ours(&plane), ["namespace/kube-node-maintenance"]);
    await_denial(&admin, false);
    let again = pauline.maint(&["uninstall", "--yes"]);
    assert_eq!(again.code, 1, "{again:?}");
    let says = "Error from server (Forbidden): nodes is forbidden";
    assert!(again.stderr.starts_with(says), "{again:?}");
}

#[test]
fn nothing_is_installed_into_a_namespace_that_is_being_deleted() {
    let Some(plane) = plane() else { return };
    let _logs = plane.keep_logs_on_panic("terminating");
    let admin = admin(&plane);
    let namespaces = "/api/v1/namespaces";
    let namespace = json!({"metadata": {"name": "kube-node-maintenance"}});
    admitted(admin.post(namespaces, &namespace), "a namespace");
    // No controller completes the deletion.
    let path = format!("{namespaces}/kube-node-maintenance");
    admitted(admin.delete(&path), "its deletion");
    let refused = admin.maint(&["install"]);
    assert_eq!(
        (refused.code, &*refused.stderr),
        (
            6,
            "error: namespace kube-node-maintenance is being deleted, and every lock with it; nothing was installed\n\
             hint: wait until it is gone, then run `kubectl maint install`\n"
        )
    );
    assert_eq!(ours(&plane), [""; 0]);
}

#[test]
fn requests_for_the_leases_have_a_flow_of_their_own() {
    let Some(plane) = crate::support::denying() else {
        return;
    };
    let _logs = plane.keep_logs_on_panic("flow");
    let uma = person(plane, "uma", &[USERS]);
    let path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/kubectl-maint-leases";
    let schema = admin(plane).get(path);
    let uid = schema["metadata"]["uid"]
        .as_str()
        .expect("a uid")
        .to_owned();
    crate::support::wait_until("the server has heard of it", || {
        uma.header(LEASES, "X-Kubernetes-PF-FlowSchema-UID") == uid
    });
    let elsewhere = uma.header("/api/v1/nodes", "X-Kubernetes-PF-FlowSchema-UID");
    assert_ne!(elsewhere, uid);
    admitted(
        uma.post(
            &format!("{LEASES}?dryRun=All"),
            &json!({
                "metadata": {"name": "flow"}, "spec": {},
            }),
        ),
        "a lease",
    );
}
