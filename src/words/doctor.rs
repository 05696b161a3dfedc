//! What `doctor` finds, and what to do about it.

pub(crate) mod finding;

use maintenance_lease::{MEDIK8S_LEASES, NAMESPACE};
use pod_safety::words::age;
use policies::{Enforcement, Mode};

use self::finding::{Finding, KURED_LOCK, Level, Source};
use super::fencing::count;
use super::hint_command::{NAME, Program};
use super::missing_right;
use super::policies::{needed_for_policies, until_namespace_is_gone};
use super::session::clocks;
use super::verb::first;
use crate::text::escape;

/// The annotation of the audit log on requests that break a rule.
const AUDITED: &str = "validation.policy.admission.k8s.io/validation_failure";

/// How many names are listed.
const LISTED: usize = 10;

/// How serious it is, what was found, and what to do about it.
pub(crate) fn lines(found: &Finding, program: &Program) -> (Level, String, Option<String>) {
    let ok = |says: String| (Level::Ok, says, None);
    let note = |says: String, hint: String| (Level::Note, says, Some(hint));
    // With their own kubeconfig.
    let by_administrator = || format!("an administrator can check with `{NAME} doctor`");
    let problem = |says: String, hint: String| (Level::Problem, says, Some(hint));
    match found {
        Finding::Server { version, place } => {
            ok(format!("Kubernetes {}, {place}", escape(version)))
        }
        Finding::User { api_user, holder } => ok(format!(
            "API user {}; holder of your locks: {}",
            escape(api_user),
            escape(holder)
        )),
        Finding::MissingRights(missing) => problem(
            format!("you may not {}", missing.join(", ")),
            missing_right::permissions(),
        ),
        Finding::Rights { of_policy } => {
            let mut may = vec!["acquire, renew and release locks"];
            may.extend(of_policy.iter().map(|right| match *right {
                "hold" => "hold nodes in deny mode (right \"hold\")",
                _ => "take over locks in deny mode (right \"takeover\")",
            }));
            let has = |right| of_policy.contains(&right);
            may.extend(match (has("hold"), has("takeover")) {
                (false, false) => Some("but not hold nodes or take over locks in deny mode"),
                (true, false) => Some("but not take over locks in deny mode"),
                (false, true) => Some("but not hold nodes in deny mode"),
                (true, true) => None,
            });
            ok(format!("you may {}", may.join(", ")))
        }
        Finding::NamespaceDeleting => problem(
            format!("{NAMESPACE} is being deleted, and every lock with it"),
            until_namespace_is_gone(program),
        ),
        Finding::NamespaceMissing => problem(
            format!("{NAMESPACE} does not exist"),
            format!(
                "create it with `{}`, or, without the policies, with `{}`",
                program.run("install"),
                program.kubectl(format_args!("create namespace {NAMESPACE}"))
            ),
        ),
        Finding::Namespace => ok(NAMESPACE.to_owned()),
        Finding::Clock(None) => ok("the local clock agrees with the API server".to_owned()),
        Finding::Clock(Some(warning)) => problem(
            clocks(*warning),
            "synchronize the clocks, for example with NTP".to_owned(),
        ),
        Finding::Policy {
            mode,
            refuses,
            broken,
        } => policy(*mode, *refuses, *broken, program),
        Finding::PolicyUnread { refuses } => match refuses {
            Some(true) => ok("a write that breaks a rule was refused".to_owned()),
            Some(false) => note(
                "a write that breaks a rule was admitted".to_owned(),
                by_administrator(),
            ),
            None => note(
                "you may not see the policies".to_owned(),
                by_administrator(),
            ),
        },
        Finding::NoAdmission => note(
            "this API server has no admission policies".to_owned(),
            needed_for_policies(),
        ),
        Finding::OtherRelease(names) => note(
            format!(
                "these objects are from another release, or were edited: {}",
                first(names, LISTED)
            ),
            format!(
                "to replace them and keep their mode: `{}`",
                program.run("install")
            ),
        ),
        Finding::SameRelease => {
            ok("the policies and this plugin are of the same release".to_owned())
        }
        Finding::Untracked { nodes, is_denied } => {
            let effect = match is_denied {
                true => "so the lease policy refuses to lock these nodes",
                false => "so the lease policy would refuse to lock these nodes in deny mode",
            };
            let says = format!(
                "{} without managedFields, {effect}: {}",
                count(nodes.len(), "Lease"),
                first(nodes, LISTED)
            );
            let hint = format!("to repair them: `{}`", program.run("doctor --fix"));
            match is_denied {
                true => problem(says, hint),
                false => note(says, hint),
            }
        }
        Finding::Repaired(nodes) => ok(format!("repaired: {}", first(nodes, LISTED))),
        Finding::Leases(count) => ok(format!("{count} checked")),
        Finding::LeftOver(nodes) => note(
            format!(
                "these nodes still have the held label, opt-outs or a cordon of a lock that has ended or expired: {}",
                first(nodes, LISTED)
            ),
            format!("to remove them: `{}`", program.run("doctor --fix")),
        ),
        Finding::Removed(nodes) => ok(format!(
            "removed the held label, opt-outs and cordons of locks that have ended or expired from: {}",
            first(nodes, LISTED)
        )),
        Finding::NotRemoved { nodes, why } => (
            Level::Note,
            format!(
                "could not remove the held label, opt-outs or a cordon of a lock that has ended or expired from {}: {}",
                first(nodes, LISTED),
                escape(why)
            ),
            None,
        ),
        Finding::WithoutKeys(nodes) => note(
            format!(
                "locked without the held label, opt-outs or cordon that the lock asks for: {}",
                first(nodes, LISTED)
            ),
            format!(
                "their holders can set them: `{}`",
                program.run("doctor --fix")
            ),
        ),
        Finding::KeysSet(nodes) => ok(format!(
            "set the held label, opt-outs and cordons that the locks ask for on: {}",
            first(nodes, LISTED)
        )),
        Finding::KeysNotSet { nodes, why } => (
            Level::Note,
            format!(
                "could not set the held label, opt-outs or a cordon that the lock asks for on {}: {}",
                first(nodes, LISTED),
                escape(why)
            ),
            None,
        ),
        Finding::NoOtherLock => ok("neither kured nor medik8s holds a lock".to_owned()),
        Finding::KuredLocks(locks) => {
            let locks = locks.iter().map(|(node, since)| match since {
                Some(since) => format!("{} ({})", escape(node), age(*since)),
                None => escape(node),
            });
            note(
                format!(
                    "kured holds its lock for {}",
                    first(&locks.collect::<Vec<_>>(), LISTED)
                ),
                format!(
                    "if kured is not rebooting these nodes, remove its lock: `{}`",
                    program.kubectl(format_args!(
                        "-n kube-system annotate daemonset kured {KURED_LOCK}-"
                    ))
                ),
            )
        }
        Finding::Medik8sLeases(leases) => {
            let leases = leases
                .iter()
                .map(|(node, holder)| format!("{} ({})", escape(node), escape(holder)));
            note(
                format!(
                    "medik8s has a Lease for {}",
                    first(&leases.collect::<Vec<_>>(), LISTED)
                ),
                format!(
                    "to see when it expires: `{}`",
                    program.run(format_args!("leases -n {MEDIK8S_LEASES}"))
                ),
            )
        }
        Finding::Overdue(holds) => {
            let holds = holds.iter().map(|(node, holder, ago)| {
                format!("{} ({holder}, overdue by {})", escape(node), age(*ago))
            });
            note(
                format!(
                    "holds past their expected end: {}",
                    first(&holds.collect::<Vec<_>>(), LISTED)
                ),
                format!("if the work is done: `{}`", program.run("unhold NODE")),
            )
        }
        Finding::Labels(labeled) => ok(format!("{} with the held label", count(*labeled, "node"))),
        Finding::Unread {
            what,
            is_forbidden: true,
            ..
        } => note(
            format!("you may not read {}", source(*what)),
            by_administrator(),
        ),
        Finding::Unread { what, error, .. } => (
            Level::Note,
            format!("could not read {}: {}", source(*what), escape(error)),
            None,
        ),
    }
}

fn source(what: Source) -> &'static str {
    match what {
        Source::User => "your user name",
        Source::Rights => "your rights",
        Source::Namespaces => "namespaces",
        Source::Policies => "the policies",
        Source::Leases => "the Leases",
        Source::RepairedLeases => "the repaired Leases",
        Source::Nodes => "nodes",
        Source::KuredLock => "the DaemonSet of kured, which has its lock",
        Source::Medik8sLeases => "the Leases of medik8s",
        Source::Metrics => "the metrics of the API server, so broken rules were not counted",
    }
}

fn policy(
    mode: Enforcement,
    refuses: Option<bool>,
    broken: Option<u64>,
    program: &Program,
) -> (Level, String, Option<String>) {
    let (level, says, hint) = match (mode, refuses) {
        (Enforcement::NotInstalled, _) => (
            Level::Note,
            "not installed".to_owned(),
            Some(format!("to install it: `{}`", program.run("install"))),
        ),
        (Enforcement::Off, _) => (
            Level::Note,
            "switched off".to_owned(),
            Some(format!(
                "to switch it on: `{}`",
                program.run("enforce audit")
            )),
        ),
        (Enforcement::On(Mode::Deny), Some(true)) => (
            Level::Ok,
            "deny: a write that breaks a rule was refused".to_owned(),
            None,
        ),
        (Enforcement::On(Mode::Deny), Some(false)) => (
            Level::Problem,
            "deny, but a write that breaks a rule was admitted".to_owned(),
            Some(format!("install it again: `{}`", program.run("install"))),
        ),
        (Enforcement::On(Mode::Deny), None) => (
            Level::Note,
            "deny; not tested".to_owned(),
            Some("to test it, run doctor as a user who may write Leases and Nodes".to_owned()),
        ),
        (Enforcement::On(mode), _) => {
            let refuse = format!("to refuse such writes: `{}`", program.run("enforce deny"));
            let (counted, hint) = match broken {
                None => (String::new(), refuse),
                Some(0) => ("; no write broke a rule".to_owned(), refuse),
                Some(count) => (
                    format!(
                        "; {count} write{} broke a rule",
                        if count == 1 { "" } else { "s" }
                    ),
                    format!(
                        "to see which requests, search the audit log for the annotation {AUDITED}; {refuse}"
                    ),
                ),
            };
            let since = broken.map(|_| " since this API server started");
            let says = format!(
                "{}: nothing is refused{counted}{}",
                mode.name(),
                since.unwrap_or_default()
            );
            (Level::Note, says, Some(hint))
        }
    };
    (level, says, hint)
}
