//! The policies admit the writes of the plugin, with the fewest rights. If they refuse a write, the plugin explains
//! why.

use std::path::{Path, PathBuf};
use std::process::Command;

use control_plane::{Authority, ControlPlane, NodeSpec, Rule};
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use crate::support::{
    ADMINISTRATORS, HOLDERS, LEASES, USERS, admin, admitted, denying, person,
    policy_of_somebody_else, run, wait_until,
};

fn node(plane: &ControlPlane, name: &str) {
    plane
        .create_nodes(&[NodeSpec::ready(name)])
        .expect("a node");
}

/// The arguments of a line without quotes.
fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Puts `node` on hold for `holder`, even if somebody else has locked it.
fn take_over<'a>(node: &'a str, holder: &'a str) -> [&'a str; 8] {
    [
        "hold",
        node,
        "-m",
        "fire",
        "--take-over",
        "--yes",
        "--holder",
        holder,
    ]
}

#[test]
fn users_lock_renew_and_release() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("plugin-users");
    node(plane, "plugin-users");
    let uma = person(plane, "uma", &[USERS]);
    let node = "plugin-users";
    uma.succeeds(&["acquire", node, "-m", "new kernel", "--holder", "uma"]);
    for _ in 0..3 {
        uma.succeeds(&["renew", node, "--holder", "uma"]);
    }
    uma.succeeds(&words(
        "renew plugin-users --holder uma --duration 1h -m more",
    ));
    uma.succeeds(&["acquire", node, "--reentry", "--holder", "uma"]);
    uma.succeeds(&["release", node, "--holder", "uma", "-m", "done"]);
    uma.succeeds(&["acquire", node, "--holder", "ugo"]);
    uma.succeeds(&[
        "release", node, "--force", "--yes", "-m", "ugo left", "--holder", "uma",
    ]);
    uma.succeeds(&["with", node, "-m", "x", "--holder", "uma", "--", "true"]);
    uma.succeeds(&["acquire", node, "--duration", "1s", "--holder", "uma"]);
    uma.succeeds(&words(
        "acquire plugin-users --wait --timeout 1m --holder ugo",
    ));
    uma.succeeds(&words(
        "acquire plugin-users --dry-run --reentry --holder ugo",
    ));
}

#[test]
fn holders_hold_and_administrators_take_over() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("plugin-holders");
    let node = "plugin-holders";
    self::node(plane, node);
    let hugo = person(plane, "hugo", &[USERS, HOLDERS]);
    let ada = person(plane, "ada", &[ADMINISTRATORS]);
    let hold = ["hold", node, "-m", "bad DIMM", "--holder", "hugo"];
    hugo.succeeds(&hold);
    hugo.succeeds(&[
        "hold",
        node,
        "-m",
        "two bad DIMMs",
        "--expect-until",
        "2d",
        "--holder",
        "hugo",
    ]);
    hugo.succeeds(&["unhold", node, "--holder", "hugo"]);
    hugo.succeeds(&["acquire", node, "--holder", "hugo"]);
    hugo.succeeds(&hold);
    hugo.succeeds(&["release", node, "--holder", "hugo"]);
    let take = take_over(node, "ada");
    for of in ["lock", "hold"] {
        match of {
            "lock" => hugo.succeeds(&["acquire", node, "--holder", "hugo"]),
            _ => hugo.succeeds(&hold),
        };
        ada.succeeds(&take);
        ada.succeeds(&["unhold", node, "--holder", "ada"]);
    }
    hugo.succeeds(&hold);
    let path = format!("/api/v1/nodes/{node}");
    let label = || admin(plane).get(&path)["metadata"]["labels"]["kubectl-maint.dev/held"].clone();
    assert_eq!(label(), "hugo");
    let run = ada.succeeds(&["unhold", node, "--yes", "--holder", "ada"]);
    assert!(!run.stderr.contains("that stays"), "{run:?}");
    assert_eq!(label(), Value::Null);
    // A lock of another client has no nonce.
    let lease = json!({
        "metadata": {"name": "plugin-by-hand", "annotations": hugo.signature(4)},
        "spec": {"holderIdentity": "kubeadm:root", "leaseTransitions": 4},
    });
    admitted(hugo.post(LEASES, &lease), "a hold by hand");
    self::node(plane, "plugin-by-hand");
    let take = ["hold", "plugin-by-hand", "-m", "x", "--take-over", "--yes"];
    ada.succeeds(&take);
}

#[test]
fn a_refusal_names_the_missing_right() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("plugin-refused");
    let node = "refused-1";
    self::node(plane, node);
    let uma = person(plane, "uma", &[USERS]);
    let hugo = person(plane, "hugo", &[USERS, HOLDERS]);
    let refused = uma.maint(&["hold", node, "-m", "x", "--holder", "uma"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_eq!(
        refused.stderr,
        r#"error: cannot put node/refused-1 on hold: a policy refused it: to start a hold, uma needs the right "hold" on leases (maint-hold-right)
hint: ask an administrator for the right "hold" on leases; `kubectl maint install` creates the roles (deploy/rbac.yaml)
"#
    );
    uma.succeeds(&["acquire", node, "--holder", "uma"]);
    let refused = uma.maint(&["hold", node, "-m", "x", "--holder", "uma"]);
    assert_eq!(
        refused.stderr,
        "error: cannot put node/refused-1 on hold: a policy refused it: to turn a lock into a hold, uma needs \
         the right \"hold\" on leases (maint-hold-right)\nhint: ask an administrator for the right \"hold\" on \
         leases; `kubectl maint install` creates the roles (deploy/rbac.yaml)\n"
    );
    let ugo = person(plane, "ugo", &[USERS]);
    let take = take_over(node, "ugo");
    let refused = ugo.maint(&take);
    assert_eq!(
        refused.stderr,
        "error: cannot put node/refused-1 on hold: a policy refused it: to replace this lock with a hold, ugo \
         needs the right \"hold\" on leases (maint-hold-right)\nhint: ask an administrator for the right \"hold\" \
         on leases; `kubectl maint install` creates the roles (deploy/rbac.yaml)\n"
    );
    let take = take_over(node, "hugo");
    let refused = hugo.maint(&take);
    assert_eq!(refused.code, 1, "{refused:?}");
    let cause = "error: cannot put node/refused-1 on hold: a policy refused it: locked by uma (API user \
                 uma) until ";
    assert!(refused.stderr.starts_with(cause), "{refused:?}");
    let hint = " UTC (maint-live-lock)\nhint: ask the API user of this lock to end it; to take it over, ask an administrator for the right \
                \"takeover\" on leases; `kubectl maint install` creates the roles (deploy/rbac.yaml)\n";
    assert!(refused.stderr.ends_with(hint), "{refused:?}");
}

#[test]
fn a_policy_of_somebody_else_is_no_missing_permission() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("plugin-foreign");
    let (name, node) = ("quiet-hours", "plugin-foreign");
    self::node(plane, node);
    let admin = admin(plane);
    let rule = json!({
        "apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"], "resources": ["leases"],
        "operations": ["CREATE", "UPDATE"], "resourceNames": [node],
    });
    let validation = json!({
        "expression": "false", "message": "maint-clock: not at night", "reason": "Forbidden",
    });
    policy_of_somebody_else(&admin, name, &rule, &validation);
    let lease = json!({"metadata": {"name": node}, "spec": {}});
    wait_until("it refuses", || {
        admin.post(&format!("{LEASES}?dryRun=All"), &lease).is_err()
    });
    let uma = person(plane, "uma", &[USERS]);
    let refused = uma.maint(&["acquire", node, "-o", "json", "--holder", "uma"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(!refused.stderr.contains("hint: "), "{refused:?}");
    let list: Value = serde_json::from_str(&refused.stdout).expect("JSON");
    let error = &list["items"][0]["error"];
    assert_eq!(error["code"], "RefusedByPolicy", "{refused:?}");
}

/// Creates a service account in the namespace `default` that may acquire locks. Returns a token for it.
fn robot(plane: &ControlPlane, name: &str) -> Value {
    let admin = admin(plane);
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({"metadata": {"name": name}});
    admitted(admin.post(accounts, &account), "an account");
    let request = json!({"spec": {}});
    let token = admin.post(&format!("{accounts}/{name}/token"), &request);
    let rights = [
        Rule::new(
            "coordination.k8s.io",
            &["leases"],
            &["get", "create", "patch"],
        ),
        Rule::new("", &["nodes"], &["get"]),
    ];
    let user = format!("system:serviceaccount:default:{name}");
    plane.grant(&user, &rights).expect("rights");
    admitted(token, "a token")["status"]["token"].clone()
}

/// Writes a copy of the administrator's kubeconfig to `directory`, with this user.
fn kubeconfig_of(plane: &ControlPlane, directory: &Path, user: &Value) -> PathBuf {
    let mut config: Value = {
        let file = Kubeconfig::read_from(plane.admin_kubeconfig()).expect("a kubeconfig");
        serde_json::to_value(file).expect("JSON")
    };
    config["users"][0]["user"] = user.clone();
    let path = directory.join("kubeconfig");
    std::fs::write(&path, config.to_string()).expect("it is written");
    path
}

/// Runs the plugin with this home directory and as this service account. Counts its requests for the API user.
fn user_reviews(home: &Path, robot: &str, arguments: &[&str]) -> usize {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-maint"));
    command.args(arguments).env_clear();
    let run = run(command
        .env("KUBECONFIG", home.join("kubeconfig"))
        .env("HOME", home)
        .env("ROBOT", robot));
    assert_eq!(run.code, 0, "{arguments:?}: {run:?}");
    run.stderr.matches("selfsubjectreviews").count()
}

fn holder_of(plane: &ControlPlane, node: &str) -> Value {
    admin(plane).get(&format!("{LEASES}/{node}"))["spec"]["holderIdentity"].clone()
}

/// The API user that the lock of the node names.
fn user_of(plane: &ControlPlane, node: &str) -> Value {
    let lease = admin(plane).get(&format!("{LEASES}/{node}"));
    lease["metadata"]["annotations"]["kubectl-maint.dev/user"].clone()
}

#[test]
fn the_user_of_a_credential_plugin_is_asked_for_by_every_acquisition() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("plugin-robot");
    let node = "plugin-robot";
    self::node(plane, node);
    let home = tempfile::tempdir().expect("a directory");
    let version = "client.authentication.k8s.io/v1";
    for name in ["robot", "other"] {
        let token = robot(plane, name);
        let credential = json!({
            "apiVersion": version, "kind": "ExecCredential", "status": {"token": token},
        });
        std::fs::write(home.path().join(name), credential.to_string()).expect("it is written");
    }
    // The environment alone decides which user this is.
    let exec = json!({
        "apiVersion": version, "command": "/bin/sh", "args": ["-c", "exec /bin/cat \"$HOME/$ROBOT\""],
        "interactiveMode": "Never",
    });
    kubeconfig_of(plane, home.path(), &json!({"exec": exec}));
    for (transition, name) in [(1, "robot"), (2, "other"), (3, "robot")] {
        let reviews = user_reviews(home.path(), name, &["acquire", node, "-v6"]);
        assert_eq!(reviews, 1, "{name}");
        let user = format!("{transition}-system:serviceaccount:default:{name}");
        assert_eq!(user_of(plane, node), user);
        assert_eq!(holder_of(plane, node), user[2..]);
        // `release` reads the API user to decide whether the lock belongs to this user.
        let reviews = user_reviews(home.path(), name, &["release", node, "-v6"]);
        assert_eq!(reviews, 1, "{name}");
    }
    assert!(!home.path().join(".kube").exists(), "nothing is kept");
}

/// The API server ignores a certificate of an unknown authority, and then uses the token.
#[test]
fn a_user_who_is_another_than_the_credentials_say_is_asked_for_again() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("plugin-foreign-ca");
    let node = "plugin-foreign-ca";
    self::node(plane, node);
    let home = tempfile::tempdir().expect("a directory");
    let foreign = Authority::new("foreign").expect("an authority");
    let foreign = foreign.client("mallory", &[]).expect("a certificate");
    std::fs::write(home.path().join("crt"), foreign.cert_pem).expect("it is written");
    std::fs::write(home.path().join("key"), foreign.key_pem).expect("it is written");
    let user = json!({
        "client-certificate": "crt", "client-key": "key", "token": robot(plane, "misnamed"),
    });
    kubeconfig_of(plane, home.path(), &user);
    assert_eq!(user_reviews(home.path(), "", &["acquire", node, "-v6"]), 1);
    let user = "1-system:serviceaccount:default:misnamed";
    assert_eq!(user_of(plane, node), user);
}

#[test]
fn a_lock_of_ones_name_and_another_api_user_is_explained() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("plugin-same-name");
    let node = "plugin-same-name";
    self::node(plane, node);
    let uma = person(plane, "uma", &[USERS]);
    let ugo = person(plane, "ugo", &[USERS]);
    uma.succeeds(&["acquire", node, "--holder", "ops"]);
    let refused = ugo.maint(&["release", node, "--holder", "ops"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    let hint = " UTC (maint-live-lock)\nhint: ask the API user of this lock to end it; to take it over, ask an administrator for \
                the right \"takeover\" on leases; `kubectl maint install` creates the roles (deploy/rbac.yaml)\n";
    assert!(refused.stderr.ends_with(hint), "{refused:?}");
    ugo.succeeds(&["renew", node, "--holder", "ops"]);
    ugo.succeeds(&["acquire", node, "--reentry", "--holder", "ops"]);
    let refused = ugo.maint(&["renew", node, "-m", "mine", "--holder", "ops"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    let hint = " UTC (maint-live-lock)\nhint: only that API user can change the reason; extend it with \
                `kubectl maint renew plugin-same-name --holder ops`\n";
    assert!(refused.stderr.ends_with(hint), "{refused:?}");
    assert_eq!(user_of(plane, node), "1-uma");
    let ada = person(plane, "ada", &[ADMINISTRATORS]);
    let force = [
        "release", node, "--force", "--yes", "-m", "x", "--holder", "ada",
    ];
    ada.succeeds(&force);
}

/// `docs/policies.md` explains every rule of the policies.
#[test]
fn every_rule_is_explained() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect(path);
    let docs = read("docs/policies.md");
    let mut codes = 0;
    for policy in ["deploy/lease-policy.yaml", "deploy/node-policy.yaml"] {
        let policy = read(policy);
        // Each rule needs a fixed message too: a message that quotes values may be invalid.
        for rule in policy.split("\n    - expression: ").skip(1) {
            let code = |begin: &str| {
                let (_, text) = rule.split_once(begin)?;
                let text = &text[text.find("maint-")?..];
                text.split(':').next()
            };
            let fixed = code("      message: ");
            assert!(fixed.is_some(), "{rule}");
            let quoting = code("      messageExpression: ");
            assert!(quoting.is_none() || quoting == fixed, "{rule}");
        }
        for line in policy.lines() {
            let Some(begin) = line.find("maint-") else {
                continue;
            };
            let Some((code, _)) = line[begin..].split_once(": ") else {
                continue;
            };
            if code.chars().all(|c| c.is_ascii_lowercase() || c == '-') {
                codes += 1;
                assert!(
                    docs.contains(&format!("`{code}`")),
                    "{code} is not in docs/policies.md"
                );
            }
        }
    }
    assert!(codes >= 12, "{codes}");
}
