//! `install`, `enforce` and `uninstall`, each on its own control plane, because they affect all requests. Also:
//! switching the policies off without the plugin.

use std::io::Write as _;
use std::process::{Command, Stdio};

use control_plane::{ControlPlane, NodeSpec, is_left_out};
use serde_json::{Value, json};

use crate::support::{
    ADMINISTRATORS, BINDINGS, LEASES, Person, USERS, admin, admitted, await_denial, manifest,
    person, run,
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

/// The objects with our label, as kubectl names them.
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

/// The line of this page that begins like this.
fn documented_line(page: &str, begin: &str) -> String {
    let path = format!("{}/{page}", env!("CARGO_MANIFEST_DIR"));
    let docs = std::fs::read_to_string(path).expect("the page");
    let line = docs.lines().find(|line| line.starts_with(begin));
    line.expect("the line").to_owned()
}

#[test]
fn what_is_printed_is_deploy_and_needs_no_server() {
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
    let missing = admin.maint(&["enforce", "deny"]);
    assert_eq!(missing.code, 6, "{missing:?}");
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
        name.push_str(" applied");
    }
    expected.sort_unstable();
    assert_eq!(applied, expected);
    await_denial(&admin, false);

    assert_eq!(
        admin.succeeds(&["enforce", "warn"]).stdout,
        "policies in mode warn\n"
    );
    assert_eq!(actions(&admin), json!(["Warn", "Audit"]));
    admin.succeeds(&["enforce", "deny"]);
    await_denial(&admin, true);
    // An upgrade keeps the mode.
    admin.succeeds(&["install"]);
    assert_eq!(actions(&admin), json!(["Deny", "Audit"]));

    let off = admin.succeeds(&["enforce", "off"]);
    assert_eq!(off.stdout, "policies switched off\n");
    await_denial(&admin, false);
    let again = admin.succeeds(&["install"]);
    let hint = format!(
        "hint: the policies stay switched off; to switch them on, run `{program} enforce audit`\n"
    );
    assert_eq!(again.stderr, hint);
    admin.succeeds(&["enforce", "off"]);
    admin.succeeds(&["enforce", "deny"]);
    await_denial(&admin, true);

    let nodes = [NodeSpec::ready("kept")];
    plane.create_nodes(&nodes).expect("a node");
    let uma = person(&plane, "uma", &[USERS]);
    uma.succeeds(&["acquire", "kept", "-m", "stays"]);
    let unasked = admin.maint(&["uninstall"]);
    assert_eq!(unasked.code, 6, "{unasked:?}");
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

#[test]
fn what_another_tool_manages_is_left_alone() {
    let Some(plane) = plane() else { return };
    let _logs = plane.keep_logs_on_panic("managed");
    let admin = admin(&plane);
    let printed = admin.succeeds(&["install", "-o", "yaml"]).stdout;
    let mut kubectl = plane.kubectl_command().expect("kubectl");
    let argo = [
        "apply",
        "--server-side",
        "--field-manager=argocd-controller",
        "-f",
        "-",
    ];
    let mut child = kubectl
        .args(argo)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("kubectl");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(printed.as_bytes()).expect("kubectl reads");
    drop(stdin);
    assert!(child.wait().expect("it ends").success());

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
}

#[test]
fn kubectl_alone_switches_the_policies_off() {
    let Some(plane) = plane() else { return };
    let _logs = plane.keep_logs_on_panic("switch-off");
    let admin = admin(&plane);
    admin.succeeds(&["install"]);
    admin.succeeds(&["enforce", "deny"]);
    await_denial(&admin, true);
    let line = documented_line(
        "docs/policies.md",
        "kubectl delete validatingadmissionpolicybinding",
    );
    let words: Vec<&str> = line.split(' ').skip(1).collect();
    plane.kubectl(&words).expect("the line works");
    await_denial(&admin, false);
    // The files have the same line.
    let deployed = std::fs::read_to_string(manifest("lease-policy.yaml")).expect("a file");
    assert!(deployed.contains(&line), "{line}");

    // And kubectl alone removes everything but the namespace, which has the Leases.
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
