//! What `doctor` finds, and what to do about it.

use maintenance_lease::protocol::Span;
use maintenance_lease::{ApiError, MEDIK8S_LEASES, NAMESPACE};
use pod_safety::words::age;
use policies::Mode;
use schemars::JsonSchema;
use serde::Serialize;

use super::confirmation;
use super::hint_command::Program;
use super::missing_right;
use super::policies::Enforcement;
use super::verb::first;
use crate::error::Failure;
use crate::text::escape;

/// The annotation of kured's DaemonSet that has its lock.
pub(crate) const KURED_LOCK: &str = "weave.works/kured-node-lock";

/// The annotation of the audit log on requests that break a rule.
const AUDITED: &str = "validation.policy.admission.k8s.io/validation_failure";

/// How many names are listed.
const LISTED: usize = 10;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// Optional, or not checked.
    Note,
    /// Locks, or their policies, do not work as they should.
    Problem,
}

impl Level {
    /// The word that begins the line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Problem => "problem",
        }
    }
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    Server,
    User,
    Rights,
    Namespace,
    Policies,
    NodePolicy,
    LeasePolicy,
    Release,
    Leases,
    HeldLabels,
    Machines,
    OtherLocks,
    Clock,
}

impl Check {
    /// The name in the line, and for programs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::User => "user",
            Self::Rights => "rights",
            Self::Namespace => "namespace",
            Self::Policies => "policies",
            Self::NodePolicy => "node policy",
            Self::LeasePolicy => "lease policy",
            Self::Release => "release",
            Self::Leases => "leases",
            Self::HeldLabels => "held labels",
            Self::Machines => "machines",
            Self::OtherLocks => "other locks",
            Self::Clock => "clock",
        }
    }
}

/// What a check reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    User,
    Rights,
    Namespaces,
    Policies,
    Leases,
    RepairedLeases,
    Nodes,
    Machines,
    KuredLock,
    Medik8sLeases,
    Metrics,
}

impl Source {
    fn words(self) -> &'static str {
        match self {
            Self::User => "who you are",
            Self::Rights => "your rights",
            Self::Namespaces => "namespaces",
            Self::Policies => "the policies",
            Self::Leases => "the Leases",
            Self::RepairedLeases => "the repaired Leases",
            Self::Nodes => "nodes",
            Self::Machines => "the Machines of the nodes",
            Self::KuredLock => "the DaemonSet of kured, which has its lock",
            Self::Medik8sLeases => "the Leases of medik8s",
            Self::Metrics => "the metrics of the API server, so broken rules were not counted",
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug)]
pub(crate) enum Discovery {
    Server {
        version: String,
        place: String,
    },
    User {
        api_user: String,
        holder: String,
    },
    /// The user lacks these permissions.
    MissingRights(Vec<String>),
    /// The user may lock nodes, and has these rights of the lease policy.
    Rights {
        of_policy: Vec<&'static str>,
    },
    NamespaceDeleting,
    NamespaceMissing,
    Namespace,
    /// The clocks agree, or a warning why not.
    Clock(Option<String>),
    /// What a policy does, whether it refused a wrong write, and how many broken rules the API server has counted.
    /// `None`: that was not checked.
    Policy {
        mode: Enforcement,
        refuses: Option<bool>,
        broken: Option<u64>,
    },
    /// Nobody may see the mode, but this user may see whether a wrong write is refused.
    PolicyUnread {
        refuses: Option<bool>,
    },
    NoAdmission,
    /// These objects are not those of this release.
    OtherRelease(Vec<String>),
    SameRelease,
    /// Leases without managedFields.
    Untracked {
        nodes: Vec<String>,
        is_denied: bool,
    },
    Repaired(Vec<String>),
    Leases(usize),
    /// The nodes on hold past the expected end: who holds them, and for how long.
    Overdue(Vec<(String, String, Span)>),
    /// Nodes with the held label or opt-outs of a lock that has ended or expired.
    LeftOver(Vec<String>),
    /// What was left on these Nodes was removed.
    Removed(Vec<String>),
    /// It was not. `None`: the label has no lock id.
    NotRemoved {
        nodes: Vec<String>,
        why: Option<String>,
    },
    Labels(usize),
    /// Nodes on hold, each with the opt-outs that somebody else removed.
    MissingOptOuts(Vec<(String, Vec<String>)>),
    /// No other tool holds a lock of its own.
    NoOtherLock,
    /// The nodes for which kured holds its lock, and since when.
    KuredLocks(Vec<(String, Option<Span>)>),
    /// The nodes for which operators of medik8s hold a Lease, and which operator it is.
    Medik8sLeases(Vec<(String, String)>),
    /// The nodes whose medik8s Lease is held by a lock that has ended or expired.
    StaleMedik8sLeases(Vec<String>),
    /// Such Leases were deleted.
    Medik8sLeasesDeleted(Vec<String>),
    /// Nodes on hold that lack the label.
    Unlabelled(Vec<String>),
    /// The number of Machines with opt-outs.
    Machines(usize),
    /// Machines with opt-outs of a lock that has ended or expired, as `NAMESPACE/NAME of node/NODE`.
    StaleMachines(Vec<String>),
    /// The opt-outs of such Machines were removed.
    MachinesRepaired(Vec<String>),
    /// This could not be read.
    Unread {
        what: Source,
        is_forbidden: bool,
        error: String,
    },
}

impl Discovery {
    /// What could not be read, because of `failure`.
    pub(crate) fn unread(what: Source, failure: &Failure) -> Self {
        Self::Unread {
            what,
            is_forbidden: failure.api().is_some_and(ApiError::is_forbidden),
            error: failure.to_string(),
        }
    }

    /// How serious it is, what was found, and what to do about it.
    pub(crate) fn lines(&self, program: &Program) -> (Level, String, Option<String>) {
        let ok = |says: String| (Level::Ok, says, None);
        let note = |says: String, hint: String| (Level::Note, says, Some(hint));
        let by_administrator = || {
            format!(
                "an administrator can check with `{}`",
                program.unimpersonated().run("doctor")
            )
        };
        let problem = |says: String, hint: String| (Level::Problem, says, Some(hint));
        match self {
            Self::Server { version, place } => {
                ok(format!("Kubernetes {}, {place}", escape(version)))
            }
            Self::User { api_user, holder } => ok(format!(
                "API user {}; holder of your locks: {}",
                escape(api_user),
                escape(holder)
            )),
            Self::MissingRights(missing) => problem(
                format!("you may not {}", missing.join(", ")),
                missing_right::permissions(),
            ),
            Self::Rights { of_policy } => {
                let mut may = vec!["acquire, renew and release locks"];
                may.extend(of_policy.iter().map(|right| match *right {
                    "hold" => "hold nodes in deny mode (right \"hold\")",
                    _ => "take over locks in deny mode (right \"takeover\")",
                }));
                let has = |right| of_policy.contains(&right);
                may.extend(match (has("hold"), has("takeover")) {
                    (false, false) => Some("no right to hold or take over in deny mode"),
                    (true, false) => Some("no right to take over in deny mode"),
                    (false, true) => Some("no right to hold in deny mode"),
                    (true, true) => None,
                });
                ok(format!("you may {}", may.join("; ")))
            }
            Self::NamespaceDeleting => problem(
                format!("{NAMESPACE} is being deleted, and every lock with it"),
                format!(
                    "wait until it is gone, then create it with `{}`",
                    program.run("install")
                ),
            ),
            Self::NamespaceMissing => problem(
                format!("{NAMESPACE} does not exist, so no node can be locked"),
                format!(
                    "create it with `{}`, or, without the policies, with `{}`",
                    program.run("install"),
                    program.kubectl(format_args!("create namespace {NAMESPACE}"))
                ),
            ),
            Self::Namespace => ok(NAMESPACE.to_owned()),
            Self::Clock(None) => ok("the local clock agrees with the API server".to_owned()),
            Self::Clock(Some(warning)) => problem(
                warning.clone(),
                "synchronize the clocks, for example with NTP".to_owned(),
            ),
            Self::Policy {
                mode,
                refuses,
                broken,
            } => policy(*mode, *refuses, *broken, program),
            Self::PolicyUnread { refuses } => match refuses {
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
            Self::NoAdmission => note(
                "this API server has no admission policies".to_owned(),
                format!(
                    "they need Kubernetes 1.{} or newer; the in-memory sandbox has none",
                    policies::OLDEST_MINOR
                ),
            ),
            Self::OtherRelease(names) => note(
                format!(
                    "not of this plugin's release, or edited: {}",
                    first(names, LISTED)
                ),
                format!(
                    "to replace them and keep their mode: `{}`",
                    program.run("install")
                ),
            ),
            Self::SameRelease => {
                ok("the policies and this plugin are of the same release".to_owned())
            }
            Self::Untracked { nodes, is_denied } => {
                let says = format!(
                    "{} without managedFields, so the lease policy refuses to lock: {}",
                    nodes.len(),
                    first(nodes, LISTED)
                );
                let hint = format!("to repair them: `{}`", program.run("doctor --fix"));
                match is_denied {
                    true => problem(says, hint),
                    false => note(says, hint),
                }
            }
            Self::Repaired(nodes) => ok(format!("repaired: {}", first(nodes, LISTED))),
            Self::Leases(count) => ok(format!("{count} checked")),
            Self::LeftOver(nodes) => note(
                format!(
                    "with the held label or opt-outs of a lock that has ended or expired: {}",
                    first(nodes, LISTED)
                ),
                format!("to remove them: `{}`", program.run("doctor --fix")),
            ),
            Self::Removed(nodes) => ok(format!(
                "removed what was left on: {}",
                first(nodes, LISTED)
            )),
            Self::NotRemoved { nodes, why } => note(
                format!(
                    "could not remove the held label or opt-outs of a lock that has ended or expired: {}",
                    first(nodes, LISTED)
                ),
                match why {
                    Some(why) => escape(why),
                    None => format!(
                        "to remove a label without a lock id: `{}`",
                        program.kubectl("label node NODE kubectl-maint.dev/held-")
                    ),
                },
            ),
            Self::Unlabelled(nodes) => note(
                format!(
                    "on hold, but not protected by the node policy, because the held label is missing: {}",
                    first(nodes, LISTED)
                ),
                "the holder can run the same `hold` or `fence` again".to_owned(),
            ),
            Self::MissingOptOuts(nodes) => {
                let nodes = nodes
                    .iter()
                    .map(|(node, keys)| format!("{node} ({})", keys.join(", ")));
                let nodes: Vec<String> = nodes.map(|node| escape(&node)).collect();
                note(
                    format!(
                        "on hold, but somebody removed an opt-out: {}",
                        first(&nodes, LISTED)
                    ),
                    "the holder can run the same `hold` or `fence` again".to_owned(),
                )
            }
            Self::NoOtherLock => ok("neither kured nor medik8s holds a lock".to_owned()),
            Self::KuredLocks(locks) => {
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
            Self::Medik8sLeases(leases) => {
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
            Self::Overdue(holds) => {
                let holds = holds.iter().map(|(node, holder, ago)| {
                    format!("{} ({holder}, by {})", escape(node), age(*ago))
                });
                note(
                    format!(
                        "holds that are overdue: {}",
                        first(&holds.collect::<Vec<_>>(), LISTED)
                    ),
                    format!("if the work is done: `{}`", program.run("unhold NODE")),
                )
            }
            Self::StaleMedik8sLeases(nodes) => problem(
                format!(
                    "a lock that has ended or expired holds the medik8s Lease of: {}",
                    first(nodes, LISTED)
                ),
                format!("to delete it: `{}`", program.run("doctor --fix")),
            ),
            Self::Medik8sLeasesDeleted(nodes) => ok(format!(
                "deleted the medik8s Lease of: {}",
                first(nodes, LISTED)
            )),
            Self::Labels(count) => ok(format!(
                "{} with the held label",
                confirmation::nodes(*count)
            )),
            Self::Machines(count) => ok(format!("{count} with opt-outs of a lock")),
            Self::StaleMachines(machines) => problem(
                format!(
                    "opt-outs of a lock that has ended or expired block the deletion of: {}",
                    first(machines, LISTED)
                ),
                format!(
                    "to remove them: `{}` with the same --management-context",
                    program.run("doctor --fix")
                ),
            ),
            Self::MachinesRepaired(machines) => ok(format!(
                "removed the opt-outs of: {}",
                first(machines, LISTED)
            )),
            Self::Unread {
                what,
                is_forbidden: true,
                ..
            } => note(
                format!("you may not read {}", what.words()),
                by_administrator(),
            ),
            Self::Unread { what, error, .. } => {
                note(format!("could not read {}", what.words()), escape(error))
            }
        }
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
            Some(
                "the test is a dry run, which needs the right to write, and a namespace or node"
                    .to_owned(),
            ),
        ),
        (Enforcement::On(mode), _) => {
            let refuse = format!("to refuse such writes: `{}`", program.run("enforce deny"));
            let (counted, hint) = match broken {
                None => (String::new(), refuse),
                Some(0) => ("; no broken rule".to_owned(), refuse),
                Some(count) => (
                    format!("; {count} broken rule{}", if count == 1 { "" } else { "s" }),
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
