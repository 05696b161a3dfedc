//! Why a policy refused a write, and why the policies were not changed; and what to do about it.

use maintenance_lease::{ApiError, NAMESPACE};
use policies::{Enforcement, FIELD_MANAGER, Mode, OLDEST_MINOR, Refusal};

use super::fencing::count;
use super::hint_command::Program;
use super::missing_right;
use super::request::RequestContext;
use crate::error::Verb;
use crate::text::escape;

/// The command of kubectl that switches the policies off. The README and docs/policies.md have it too.
const SWITCH_OFF: &str =
    "delete validatingadmissionpolicybinding kubectl-maint-leases kubectl-maint-nodes";

/// Where the rules are explained.
const EXPLAINED: &str = concat!(
    "see ",
    env!("CARGO_PKG_REPOSITORY"),
    "/blob/main/docs/policies.md"
);

/// Where the roles are.
const ROLES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/deploy/rbac.yaml");

/// The line about a policy whose mode was set.
pub(crate) fn mode_set(policy: &str, before: Option<Enforcement>, after: Enforcement) -> String {
    let was = match before {
        Some(before @ Enforcement::NotInstalled) => return format!("{policy}: {}", before.name()),
        Some(before) if before == after => " (unchanged)".to_owned(),
        Some(before) => format!(" (was {})", before.name()),
        None => String::new(),
    };
    format!("{policy}: {}{was}", after.name())
}

/// What it means that the policies were switched off.
pub(crate) fn switched_off(program: &Program) -> String {
    format!(
        "the policies are off: nothing is checked; to switch them on again, run `{}`",
        program.run("enforce audit")
    )
}

/// Shown while the command waits until a change of the policies has an effect.
pub(crate) const WAITING_FOR_POLICIES: &str = "waiting for the API server to apply the change";

/// What a mode means, for the user who has set it.
pub(crate) fn effect(mode: Mode) -> &'static str {
    match mode {
        Mode::Audit => {
            "the policies are in audit mode: nothing is refused; the audit log shows what would be refused"
        }
        Mode::Warn => {
            "the policies are in warn mode: nothing is refused; users get a warning, and the audit log shows what \
             would be refused"
        }
        Mode::Deny => "the policies are in deny mode: writes that break a rule are refused",
    }
}

/// The groups of the installed roles, the first in full.
const GROUPS: &str =
    "kubectl-maint:viewers, :users, :holders, :fencers, :operators and :administrators";

/// What to do after an installation.
pub(crate) fn after_install(is_new: bool, is_off: bool, program: &Program) -> Option<String> {
    match (is_new, is_off) {
        (_, true) => Some(format!(
            "the policies stay switched off; to switch them on, run `{}`",
            program.run("enforce audit")
        )),
        (true, false) => Some(format!(
            "the policies are in audit mode and refuse nothing. Put people into the groups {GROUPS}, then run `{}`",
            program.run("enforce warn")
        )),
        (false, false) => None,
    }
}

/// There is nothing to uninstall.
pub(crate) const NOTHING_INSTALLED: &str = "nothing is installed";

/// What is shown before `objects` are deleted and `nodes` lose what locks set on them, and the question. The locks of
/// `locked` Nodes stand.
pub(crate) fn uninstall(
    place: &str,
    objects: usize,
    nodes: usize,
    locked: usize,
) -> (Vec<String>, &'static str) {
    let of_nodes = (nodes > 0).then(|| {
        format!(
            "The held label, its annotations and the opt-outs will be removed from {}.",
            count(nodes, "node")
        )
    });
    let of_locks = match locked {
        0 => None,
        1 => Some(
            "1 node is locked or on hold. The lock stays, and so does its cordon, but other tools may work on the node."
                .to_owned(),
        ),
        locked => Some(format!(
            "{locked} nodes are locked or on hold. The locks stay, and so do their cordons, but other tools may work on the nodes."
        )),
    };
    let rights = "Users will lose the rights that the installed roles give them.".to_owned();
    let facts = [format!("{place}: {objects} objects")]
        .into_iter()
        .chain((objects > 0).then_some(rights))
        .chain(of_nodes)
        .chain(of_locks);
    (facts.collect(), "Remove all of this?")
}

/// What is left after an uninstallation that failed.
pub(crate) fn partly_uninstalled(deleted: usize, count: usize, program: &Program) -> String {
    format!(
        "{deleted} of {count} objects were deleted, and the others stay; to delete them, run `{}` again",
        program.run("uninstall")
    )
}

/// The policies were switched off, but nobody knows what the server refuses now.
pub(crate) fn not_checked(error: &ApiError) -> String {
    format!(
        "the bindings were deleted, but the effect was not checked: {}",
        escape(&error.to_string())
    )
}

/// The lease policy does what it should, but nobody knows what the node policy does now.
pub(crate) fn node_policy_not_checked(error: &ApiError) -> String {
    format!(
        "could not check the node policy, which may need a few seconds to take effect: {}",
        escape(&error.to_string())
    )
}

/// The warning that another tool may undo `off`.
pub(crate) fn may_return(manager: &str) -> String {
    format!(
        "{} manages the bindings and may create them again; pause it, or remove them there",
        escape(manager)
    )
}

/// What to do if the namespace of the locks is being deleted.
pub(super) fn until_namespace_is_gone(program: &Program) -> String {
    format!(
        "wait until it is gone, then run `{}`",
        program.run("install")
    )
}

/// What the policies need.
pub(crate) fn needed_for_policies() -> String {
    format!(
        "the policies need Kubernetes 1.{OLDEST_MINOR} or newer, with the API admissionregistration.k8s.io/v1 enabled"
    )
}

/// Message and hint.
pub(crate) fn refusal(refusal: &Refusal, program: &Program) -> (String, String) {
    match refusal {
        Refusal::NoAdmission => (
            "this API server has no ValidatingAdmissionPolicy (admissionregistration.k8s.io/v1)"
                .to_owned(),
            needed_for_policies(),
        ),
        Refusal::Unknown { policy, error } => (
            format!(
                "unknown whether the mode of {policy} was changed: {}",
                escape(&error.to_string())
            ),
            format!("check with `{}`", program.run("enforce")),
        ),
        Refusal::NamespaceDeleting => (
            format!(
                "namespace {NAMESPACE} is being deleted, and every lock with it; nothing was installed"
            ),
            until_namespace_is_gone(program),
        ),
        Refusal::NotInstalled => (
            "the policies are not installed".to_owned(),
            format!("install them first: `{}`", program.run("install")),
        ),
        Refusal::OldServer { version } => (
            format!(
                "the server is Kubernetes {version}; the policies need 1.{OLDEST_MINOR} or newer"
            ),
            format!("kubectl maint works without them; to apply the roles alone, use {ROLES}"),
        ),
        Refusal::OtherManager { object, manager } => (
            format!(
                "{object} is managed by {}; nothing was changed",
                escape(manager)
            ),
            format!(
                "change it with that tool (`{}` prints the objects). To switch the policies \
                 off now: `{}`",
                program.run("install -o yaml"),
                program.kubectl(SWITCH_OFF)
            ),
        ),
        Refusal::Conflict { object, error } => (
            format!(
                "{object} was changed with kubectl: {}",
                escape(&error.to_string())
            ),
            format!(
                "to overwrite those changes: `{} | {}`; then set the mode again with `{}`, and --allow-user and \
                 --allow-group with `{}`",
                program.run("install -o yaml"),
                program.kubectl(format_args!(
                    "apply --server-side --force-conflicts --field-manager={FIELD_MANAGER} -f -"
                )),
                program.run("enforce MODE"),
                program.run("install")
            ),
        ),
        Refusal::Added { object, field } => {
            let patch = format!(r#"[{{"op":"remove","path":"/spec/{field}"}}]"#);
            (
                format!(
                    "spec.{field} of {object} was edited, so its policy may not check every write; nothing was changed"
                ),
                format!(
                    "to remove it: `{}`; then run `{}` again",
                    program.kubectl(format_args!("patch {object} --type=json -p '{patch}'")),
                    program.run("install")
                ),
            )
        }
        Refusal::StillEnforced(error) => (
            format!(
                "the mode was changed, but the server still refuses writes that break a rule: {}",
                escape(&error.to_string())
            ),
            format!(
                "check whether another tool changes or creates the bindings, with `{}`",
                program.kubectl("get validatingadmissionpolicybinding")
            ),
        ),
        Refusal::NotEnforced => (
            "the policies are in deny mode, but the server still admits writes that break a rule"
                .to_owned(),
            format!("check the policies with `{}`", program.run("doctor")),
        ),
        Refusal::Unchecked { wanted, error } => (
            format!(
                "{}, but the effect was not checked: {}",
                match wanted {
                    true => "the policies are in deny mode",
                    false => "the mode was changed",
                },
                escape(&error.to_string())
            ),
            match error {
                _ if error.is_forbidden() => format!(
                    "run the command again as a user who may create leases in namespace {NAMESPACE}"
                ),
                _ if error.is_not_found() => {
                    format!("create the namespace with `{}`", program.run("install"))
                }
                _ => "run the command again".to_owned(),
            },
        ),
    }
}

/// Message and hint for a write that broke a rule of a policy of ours.
pub(crate) fn rule(
    error: &ApiError,
    program: &Program,
    request: Option<RequestContext<'_>>,
) -> (String, Option<String>) {
    let (code, explanation) = error.policy_refusal().unwrap_or_default();
    // The policy's advice is for users of other programs.
    let cause = explanation.split("; ").next().unwrap_or(explanation);
    let node = escape(error.object().unwrap_or("NODE"));
    let verb = request.map(|request| request.verb);
    let failed = verb.map_or_else(
        || format!("cannot change node/{node}"),
        |verb| verb.failed(&node),
    );
    let message = format!("{failed}: a policy refused it: {} ({code})", escape(cause));
    (message, Some(advice(code, &node, request, program)))
}

/// What to do about a rule. It is true whatever the rule says about the lock.
fn advice(
    code: &str,
    node: &str,
    request: Option<RequestContext<'_>>,
    program: &Program,
) -> String {
    match (code, request.map(|request| request.verb)) {
        ("maint-live-lock", Some(Verb::Acquire | Verb::With)) => format!(
            "try again after that time; if it has passed, compare the clocks with `{}`",
            program.run("doctor")
        ),
        ("maint-live-lock", Some(Verb::Renew)) => {
            format!(
                "only that API user can change the reason; extend it with `{}`",
                program.run(format_args!("renew {node}"))
            )
        }
        ("maint-live-lock", _) => format!(
            "ask the API user of this lock to end it; to take it over, {}",
            missing_right::right("takeover")
        ),
        ("maint-hold-right", _) => missing_right::right("hold"),
        ("maint-unhold-right", _) => format!(
            "to end your own hold, you need the right \"hold\" on leases; to end somebody else's, ask them to end it, or {}",
            missing_right::right("takeover")
        ),
        ("maint-untracked", _) => {
            format!("repair its Lease with `{}`", program.run("doctor --fix"))
        }
        ("maint-clock", _) => format!("compare the clocks with `{}`", program.run("doctor")),
        ("maint-user", Some(Verb::Renew)) => {
            format!(
                "acquire it with `{}`",
                program.run(format_args!("acquire {node}"))
            )
        }
        _ => EXPLAINED.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::Failure;
    use crate::words::failure::lines;

    fn refused(policy: &str, reason: &str) -> (String, Option<String>) {
        let message = format!(
            "leases \"n\" is forbidden: ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied \
             request: {reason}"
        );
        let status = json!({
            "kind": "Status", "code": 403, "message": message, "details": {"name": "n"},
        });
        let status = serde_json::from_value(status).expect("a status");
        let failure: Failure = ApiError::Status(Box::new(status)).into();
        lines(&failure, &Program::default(), None)
    }

    #[test]
    fn without_objects_nobody_loses_a_right() {
        let facts = |objects, nodes| uninstall("here", objects, nodes, 0).0;
        assert_eq!(
            facts(0, 1),
            [
                "here: 0 objects",
                "The held label, its annotations and the opt-outs will be removed from 1 node."
            ]
        );
        assert_eq!(
            facts(9, 0),
            [
                "here: 9 objects",
                "Users will lose the rights that the installed roles give them."
            ]
        );
    }

    #[test]
    fn rules_of_our_policies_are_explained_and_no_others() {
        let lines = refused("kubectl-maint-leases", "maint-clock: too late; check it");
        let message = "cannot change node/n: a policy refused it: too late (maint-clock)";
        let hint = "compare the clocks with `kubectl maint doctor`";
        assert_eq!(lines, (message.to_owned(), Some(hint.to_owned())));
        assert_eq!(refused("quiet-hours", "not at night").1, None);
    }

    /// A later release may have more rules.
    #[test]
    fn an_unknown_rule_is_shown_as_it_is() {
        let (message, hint) = refused("kubectl-maint-leases", "maint-new: not like that");
        assert!(message.ends_with("not like that (maint-new)"), "{message}");
        assert_eq!(hint.as_deref(), Some(EXPLAINED));
    }
}
