//! `doctor`: whether this user can lock nodes in this cluster, and whether the policies work.

mod leases;
mod metrics;
mod nodes;
mod other_locks;
mod policies;
mod unread;

use std::collections::HashMap;

use clap::Args;
use futures::future::join_all;
use maintenance_lease::{LeaseScope, NAMESPACE, NodeLease};
use pod_safety::cluster::Reader;
use pod_safety::{Known, Why};

use self::policies::InForce;
use self::unread::unread;
use crate::args::output::{OutputArgs, offers_no_lock_id, templates};
use crate::error::Failure;
use crate::exit::Code;
use crate::output::checkup::{self, Checkup, CheckupList};
use crate::run::session::{Session, Start};
use crate::words::doctor::finding::{Check, Finding, Source};

/// Check the clock, your rights and the policies
///
/// It also shows your API user and the holder of your locks (docs/tasks.md). To see whether the policies work, it sends
/// dry runs of writes that they must refuse. Without --fix, nothing is changed.
///
/// Each line begins with ok, note or problem, and the line below says what to do. The exit code is 1 if there is a
/// problem. A note is about something optional, or something that you may not read.
#[derive(Args, Clone, Debug)]
#[command(
    mut_arg("format", |format| templates(
        offers_no_lock_id(format),
        "{.items[*].check}",
        "CHECK:.check,LEVEL:.level"
    )),
    mut_arg("quiet", |quiet| quiet.help("Print no line that begins with ok")),
)]
#[command(after_help = "Examples:
  kubectl maint doctor
  kubectl maint doctor --fix
  kubectl maint doctor --as=alice -o json")]
pub(crate) struct DoctorArgs {
    /// Repair Leases; remove labels, opt-outs and cordons of ended or expired locks, and set those of yours that are missing
    ///
    /// Leases are repaired if they have no managedFields.
    #[arg(long)]
    pub(crate) fix: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(crate) async fn run(args: &DoctorArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let session = start.open_for_checks().await?;
    let reader = Reader::new(session.locks.requests().clone());
    let version = session.locks.server_version().await?;
    let version = version.git_version;
    let place = session.place();
    let user = user(&session).await;
    let caller = match &user {
        Finding::User { api_user, .. } => Some(api_user.clone()),
        _ => None,
    };
    let mut found = vec![
        (Check::Server, Finding::Server { version, place }),
        (Check::User, user),
        (Check::Rights, rights(&reader).await),
        (Check::Namespace, namespace(&session).await),
    ];
    let in_force = policies::check(&session, &mut found).await;
    let caller = caller.as_deref();
    locks(&session, &reader, in_force, args.fix, caller, &mut found).await;
    let other_locks = other_locks::check(&reader).await;
    let other_locks = other_locks.into_iter();
    found.extend(other_locks.map(|found| (Check::OtherLocks, found)));
    // Last, because the answers above tell the server's time.
    found.push((
        Check::Clock,
        Finding::Clock(session.locks.server_time().warning()),
    ));
    let checkups = found.iter();
    let checkups = checkups.map(|(check, found)| Checkup::new(*check, found, session.program));
    let checkups = CheckupList::new(checkups.collect());
    let is_well = !checkups.items().iter().any(Checkup::is_problem);
    let terminal = session.terminal;
    let is_shown = |one: &&Checkup| !args.output.quiet || !one.is_ok();
    let shown: Vec<&Checkup> = checkups.items().iter().filter(is_shown).collect();
    let format = args.output.format();
    if !shown.is_empty() || !format.is_for_people() {
        terminal.show(&checkups, format, || {
            checkup::text(&shown, terminal.width())
        })?;
    }
    Ok(if is_well { Code::DONE } else { Code::ERROR })
}

/// The Leases, and what locks have left on Nodes.
async fn locks(
    session: &Session<'_>,
    reader: &Reader,
    in_force: InForce,
    fix: bool,
    caller: Option<&str>,
    found: &mut Vec<(Check, Finding)>,
) {
    // Before the Leases: keys are written while their lock is there.
    let nodes = nodes::read(reader).await;
    let scope = LeaseScope::Namespace(NAMESPACE);
    let all = match session.locks.any_leases(scope).await {
        Ok(all) => all,
        Err(error) => {
            let unread = unread(Source::Leases, &error.into());
            found.push((Check::Leases, unread));
            return;
        }
    };
    let untracked = leases::check(session, &all, in_force, fix).await;
    found.push((Check::Leases, untracked));
    let nodes = match nodes {
        Ok(read) => read,
        Err(failure) => {
            let unread = unread(Source::Nodes, &failure);
            found.push((Check::HeldLabels, unread));
            return;
        }
    };
    let leases = all.into_iter().map(|any| any.lease);
    let leases: HashMap<String, NodeLease> = leases
        .map(|lease| (lease.node().to_owned(), lease))
        .collect();
    let overdue = leases::overdue(session, &leases);
    found.extend(overdue.map(|overdue| (Check::Leases, overdue)));
    let on_nodes = nodes::check(session, &nodes, &leases, fix, caller).await;
    found.extend(on_nodes.into_iter().map(|found| (Check::HeldLabels, found)));
}

async fn user(session: &Session<'_>) -> Finding {
    match session.locks.api_user().await {
        Ok(user) => Finding::User {
            api_user: user.username.unwrap_or_default(),
            holder: session.locks.identity().to_owned(),
        },
        Err(error) => unread(Source::User, &error.into()),
    }
}

const LEASES: (&str, Option<&str>) = ("leases.coordination.k8s.io", Some(NAMESPACE));
const NODES: (&str, Option<&str>) = ("nodes", None);

/// The rights that all verbs need.
const OF_ALL_VERBS: [(&str, (&str, Option<&str>)); 8] = [
    ("get", LEASES),
    ("list", LEASES),
    ("watch", LEASES),
    ("create", LEASES),
    ("patch", LEASES),
    ("get", NODES),
    ("list", NODES),
    ("watch", NODES),
];

/// The rights that the lease policy asks for in deny mode.
const OF_POLICY: [&str; 2] = ["hold", "takeover"];

async fn rights(reader: &Reader) -> Finding {
    let of_policy = OF_POLICY.map(|verb| (verb, LEASES));
    let all = OF_ALL_VERBS.into_iter().chain(of_policy);
    let reviews = all.map(|(verb, (resource, namespace))| async move {
        (verb, resource, reader.may(verb, resource, namespace).await)
    });
    let reviews = join_all(reviews).await;
    let (of_all, of_policy) = reviews.split_at(OF_ALL_VERBS.len());
    let unknown = of_all.iter().find_map(|(_, _, may)| may.why());
    if let Some(why) = unknown {
        return Finding::Unread {
            what: Source::Rights,
            is_forbidden: matches!(why, Why::Forbidden(_)),
            error: why.to_string(),
        };
    }
    let missing = of_all.iter().filter(|(_, _, may)| *may != Known::Yes(true));
    let name = |resource: &str| resource.split('.').next().unwrap_or_default().to_owned();
    let missing = missing.map(|(verb, resource, _)| format!("{verb} {}", name(resource)));
    let missing: Vec<String> = missing.collect();
    if !missing.is_empty() {
        return Finding::MissingRights(missing);
    }
    let allowed = of_policy
        .iter()
        .filter(|(_, _, may)| *may == Known::Yes(true));
    Finding::Rights {
        of_policy: allowed.map(|(verb, _, _)| *verb).collect(),
    }
}

async fn namespace(session: &Session<'_>) -> Finding {
    let path = format!("/api/v1/namespaces/{NAMESPACE}");
    match ::policies::object(session.locks.requests(), path).await {
        Ok(Some(found)) if found["metadata"]["deletionTimestamp"].is_string() => {
            Finding::NamespaceDeleting
        }
        Ok(Some(_)) => Finding::Namespace,
        Ok(None) => Finding::NamespaceMissing,
        Err(error) => unread(Source::Namespaces, &error.into()),
    }
}
