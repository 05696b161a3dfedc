//! `doctor`: its findings and its hints.

use control_plane::{ControlPlane, is_left_out};
use serde_json::json;

use crate::support::{
    BINDINGS, Person, Run, USERS, admin, admitted, await_denial, person, wait_until,
};

/// The lines about one check.
fn lines(run: &Run, check: &str) -> String {
    let mut lines = run
        .stdout
        .lines()
        .skip_while(|line| line.get(9..).is_none_or(|line| !line.starts_with(check)));
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
        "problem  rights     you may not get leases, list leases, watch leases, create leases, patch leases, \
         get nodes, list nodes, watch nodes\nsee the role kubectl-maint-user in deploy/rbac.yaml"
    );
    let user = lines(&run, "user");
    assert!(
        user.starts_with("ok       user       nobody, with the holder "),
        "{user}"
    );
    assert_eq!(
        lines(&run, "namespace"),
        "note     namespace  you may not read namespaces\nan administrator can check it"
    );
    let run = doctor(&admin, 0);
    assert_eq!(
        lines(&run, "namespace"),
        "note     namespace  kube-node-maintenance does not exist\n\
         the first lock creates it, with the right to; or run `kubectl maint install`"
    );
    assert_eq!(
        lines(&run, "policies"),
        "note     policies   not installed: nothing checks who writes locks\n\
         to install them: `kubectl maint install`"
    );
    assert_eq!(
        lines(&run, "clock"),
        "ok       clock      agrees with the API server's"
    );

    admin.succeeds(&["install"]);
    let run = doctor(&admin, 0);
    assert_eq!(
        lines(&run, "namespace"),
        "ok       namespace  kube-node-maintenance"
    );
    assert_eq!(
        lines(&run, "policies"),
        "note     policies   mode audit: nothing is refused\n\
         to refuse wrong writes: `kubectl maint enforce deny`"
    );
    admin.succeeds(&["enforce", "deny"]);
    await_denial(&admin, true);
    let works = "ok       policies   mode deny: a wrong write was refused";
    assert_eq!(lines(&doctor(&admin, 0), "policies"), works);
    let uma = person(&plane, "uma", &[USERS]);
    let run = doctor(&uma, 0);
    assert_eq!(
        lines(&run, "rights"),
        "ok       rights     acquire, renew, release"
    );
    assert_eq!(
        lines(&run, "policies"),
        "ok       policies   wrong writes are refused"
    );

    admin.succeeds(&["enforce", "off"]);
    assert_eq!(
        lines(&doctor(&admin, 0), "policies"),
        "note     policies   switched off\nto switch them on: `kubectl maint enforce audit`"
    );
    admin.succeeds(&["enforce", "deny"]);
    await_denial(&admin, true);

    // A policy of that name which checks nothing.
    let path = BINDINGS.replace("policybindings", "policies") + "/kubectl-maint-leases";
    let nothing = json!({"spec": {"validations": [{"expression": "true"}]}});
    admitted(admin.patch(&path, &nothing), "another rule");
    let broken = "problem  policies   mode deny, but a wrong write was admitted\n\
                  install them again: `kubectl maint install`";
    wait_until("it takes effect", || {
        let run = admin.maint(&["doctor"]);
        run.code == 1 && lines(&run, "policies") == broken
    });
}
