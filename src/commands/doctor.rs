//! `doctor`: whether this user can lock nodes in this cluster, and whether the policies work.

use std::collections::HashMap;

use clap::Args;
use http::Method;
use maintenance_lease::{Accept, ApiError, Call, NAMESPACE, NodeLease, NodeLookup};
use other_tools::{HELD, KeysRemoved};
use policies::{Manifest, Mode};
use serde_json::{Value, json};

use crate::args::output::{OutputArgs, offers_no_lock_id};
use crate::error::{Failure, PolicyRefusal};
use crate::exit::Code;
use crate::output::checkup::{Checkup, CheckupList};
use crate::output::format::Format;
use crate::output::print;
use crate::run::policies::{
    Installed, held_without_lock, object, read, unlabelled_node, wrong_time,
};
use crate::run::session::{Session, Start};
use crate::words::doctor::{Check, Discovery, Source};
use crate::words::policies::Enforcement;

/// Check the clock, your rights and the policies
///
/// To see whether the policies work, it sends dry runs of writes that they must refuse. Without --fix, nothing is
/// changed.
///
/// Each line begins with ok, note or problem, and the line below says what to do. The exit code is 1 if there is a
/// problem. A note is about something optional, or something that you may not read.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("format", offers_no_lock_id))]
#[command(after_help = "Examples:
  kubectl maint doctor
  kubectl maint doctor --fix
  kubectl maint doctor --as=alice -o json")]
pub(crate) struct DoctorArgs {
    /// Repair Leases that have no managedFields, and remove held labels of locks that have ended or expired
    #[arg(long)]
    pub(crate) fix: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(crate) async fn run(args: &DoctorArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let session = start.checking().await?;
    let version = session.locks.server_version().await?;
    let version = version.git_version;
    let place = session.place();
    let mut found = vec![
        (Check::Server, Discovery::Server { version, place }),
        (Check::User, user(&session).await),
        (Check::Rights, rights(&session).await),
        (Check::Namespace, namespace(&session).await),
    ];
    let is_denied = policies(&session, &mut found).await;
    found.push((Check::Leases, leases(&session, is_denied, args.fix).await));
    labels(&session, &mut found, args.fix).await;
    // Last, because the answers above tell the server's time.
    found.push((Check::Clock, Discovery::Clock(session.clock_warning())));
    let checkups: Vec<Checkup> = found
        .iter()
        .map(|(check, found)| Checkup::new(*check, found, session.program))
        .collect();
    let is_well = !checkups.iter().any(Checkup::is_problem);
    let width = session.terminal.width();
    let texts: Vec<String> = checkups.iter().map(|one| one.text(width)).collect();
    let text = match args.output.format() {
        Format::Text | Format::Wide => Some(texts.join("\n")),
        format => print::data(&CheckupList::new(checkups), format)?,
    };
    if let Some(text) = text {
        session.terminal.data(text);
    }
    Ok(if is_well { Code::DONE } else { Code::ERROR })
}

async fn user(session: &Session<'_>) -> Discovery {
    match session.locks.api_user().await {
        Ok(user) => Discovery::User {
            api_user: user.username.unwrap_or_default(),
            holder: session.locks.identity().to_owned(),
        },
        Err(error) => unread(Source::User, &error.into()),
    }
}

/// The rights that all verbs need, without those for holds and takeovers in deny mode.
const RIGHTS: [(&str, &str, &str, &[&str]); 2] = [
    (
        "coordination.k8s.io",
        "leases",
        NAMESPACE,
        &["get", "list", "watch", "create", "patch"],
    ),
    ("", "nodes", "", &["get", "list", "watch"]),
];

async fn rights(session: &Session<'_>) -> Discovery {
    match missing_rights(session).await {
        Ok(missing) if !missing.is_empty() => return Discovery::MissingRights(missing),
        Ok(_) => {}
        Err(failure) => return unread(Source::Rights, &failure),
    }
    let mut of_policy = Vec::new();
    for verb in ["hold", "takeover"] {
        let right = ("coordination.k8s.io", "leases", NAMESPACE, verb);
        if may(session, right).await.is_ok_and(|may| may) {
            of_policy.push(verb);
        }
    }
    Discovery::Rights { of_policy }
}

async fn missing_rights(session: &Session<'_>) -> Result<Vec<String>, Failure> {
    let mut missing = Vec::new();
    for (group, resource, namespace, verbs) in RIGHTS {
        for verb in verbs {
            if !may(session, (group, resource, namespace, verb)).await? {
                missing.push(format!("{verb} {resource}"));
            }
        }
    }
    Ok(missing)
}

async fn may(
    session: &Session<'_>,
    (group, resource, namespace, verb): (&str, &str, &str, &str),
) -> Result<bool, Failure> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "group": group, "resource": resource, "namespace": namespace, "verb": verb,
        }},
    });
    let call = Call {
        method: Method::POST,
        path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned(),
        accept: Accept::Json,
        body: Some(("application/json", review.to_string().into_bytes())),
    };
    let answer = read(&session.locks.requests().call(&call).await?)?;
    Ok(answer["status"]["allowed"] == true)
}

async fn namespace(session: &Session<'_>) -> Discovery {
    let path = format!("/api/v1/namespaces/{NAMESPACE}");
    match object(session.locks.requests(), path).await {
        Ok(Some(found)) if found["metadata"]["deletionTimestamp"].is_string() => {
            Discovery::NamespaceDeleting
        }
        Ok(Some(_)) => Discovery::Namespace,
        Ok(None) => Discovery::NamespaceMissing,
        Err(failure) => unread(Source::Namespaces, &failure),
    }
}

/// The mode of each policy, whether the server enforces it, and whether the objects are those of this release. Returns
/// whether the lease policy refuses anything.
async fn policies(session: &Session<'_>, found: &mut Vec<(Check, Discovery)>) -> bool {
    let wanted = |manifest: &Manifest| manifest.is_binding() || manifest.is_policy();
    let installed = match Installed::read(session, wanted).await {
        Ok(installed) => installed,
        Err(Failure::Policies(PolicyRefusal::NoAdmission)) => {
            found.push((Check::Policies, Discovery::NoAdmission));
            return false;
        }
        Err(failure) if failure.api().is_some_and(ApiError::is_forbidden) => {
            let refuses = refuses_lease(session).await;
            found.push((Check::Policies, Discovery::PolicyUnread { refuses }));
            return refuses == Some(true);
        }
        Err(failure) => {
            found.push((Check::Policies, unread(Source::Policies, &failure)));
            return false;
        }
    };
    let mut is_denied = false;
    let with_mode = |(binding, _): &&(Manifest, _)| binding.has_mode();
    for (binding, _) in installed.bindings().filter(with_mode) {
        let mode = installed.enforcement(binding);
        let is_deny = mode == Enforcement::On(Mode::Deny);
        let (check, refuses) = match binding.name() {
            "kubectl-maint-nodes" if is_deny => (Check::NodePolicy, refuses_node(session).await),
            "kubectl-maint-nodes" => (Check::NodePolicy, None),
            _ if is_deny => (Check::LeasePolicy, refuses_lease(session).await),
            _ => (Check::LeasePolicy, None),
        };
        is_denied |= is_deny && check == Check::LeasePolicy;
        found.push((check, Discovery::Policy { mode, refuses }));
    }
    let differs = |(manifest, found): &(Manifest, Option<Value>)| {
        let found = found.as_ref()?;
        (!manifest.is_current(found)).then(|| manifest.full_name())
    };
    let others: Vec<String> = installed.objects.iter().filter_map(differs).collect();
    if !others.is_empty() {
        found.push((Check::Release, Discovery::OtherRelease(others)));
    } else if installed.objects.iter().any(|(_, found)| found.is_some()) {
        found.push((Check::Release, Discovery::SameRelease));
    }
    is_denied
}

/// Whether the server refuses a Lease that breaks a rule; `None` if the dry run fails for another reason.
async fn refuses_lease(session: &Session<'_>) -> Option<bool> {
    refuses(session, &wrong_time()).await
}

/// The same for a Node, if there is one without the held label.
async fn refuses_node(session: &Session<'_>) -> Option<bool> {
    let node = unlabelled_node(session.locks.requests()).await?;
    refuses(session, &held_without_lock(&node)).await
}

async fn refuses(session: &Session<'_>, call: &Call) -> Option<bool> {
    match session.locks.requests().call(call).await {
        Err(error) if error.policy_code().is_some() => Some(true),
        Ok(_) => Some(false),
        Err(_) => None,
    }
}

/// The Leases whose writes have no time for the lease policy. A server-side apply repairs them: it changes no lock.
async fn leases(session: &Session<'_>, is_denied: bool, fix: bool) -> Discovery {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases");
    let list = match object(session.locks.requests(), path.clone()).await {
        Ok(list) => list.unwrap_or_default(),
        Err(failure) => return unread(Source::Leases, &failure),
    };
    let all = list["items"].as_array().map_or(&[][..], Vec::as_slice);
    let is_untracked = |lease: &&Value| {
        let fields = lease["metadata"]["managedFields"].as_array();
        fields.is_none_or(Vec::is_empty)
    };
    let name = |lease: &Value| lease["metadata"]["name"].as_str().map(ToOwned::to_owned);
    let nodes: Vec<String> = all.iter().filter(is_untracked).filter_map(name).collect();
    if nodes.is_empty() {
        return Discovery::Leases(all.len());
    }
    if !fix {
        return Discovery::Untracked { nodes, is_denied };
    }
    for lease in all.iter().filter(is_untracked) {
        let metadata = &lease["metadata"];
        let (node, uid) = (
            metadata["name"].as_str().unwrap_or_default(),
            &metadata["uid"],
        );
        let applied = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {
                // With the uid, a Lease that was deleted meanwhile is not created again.
                "name": node, "uid": uid, "annotations": {"kubectl-maint.dev/repaired": "true"},
            },
        });
        let call = Call {
            method: Method::PATCH,
            path: format!("{path}/{node}?fieldManager=kubectl-maint-repair"),
            accept: Accept::Json,
            body: Some((
                "application/apply-patch+yaml",
                applied.to_string().into_bytes(),
            )),
        };
        if let Err(error) = session.locks.requests().call(&call).await {
            return unread(Source::RepairedLeases, &error.into());
        }
    }
    Discovery::Repaired(nodes)
}

/// The held labels of locks that have ended or expired, and the holds without a label that the node policy would respect.
async fn labels(session: &Session<'_>, found: &mut Vec<(Check, Discovery)>, fix: bool) {
    let path = "/api/v1/nodes?labelSelector=kubectl-maint.dev%2Fheld".to_owned();
    let labelled = object(session.locks.requests(), path).await;
    // After the Nodes: a label is written while its lock is there.
    let leases = session.locks.list().await;
    let (labelled, leases) = match (labelled, leases) {
        (Ok(labelled), Ok(leases)) => (labelled.unwrap_or_default(), leases),
        (Err(failure), _) => {
            return found.push((Check::HeldLabels, unread(Source::Nodes, &failure)));
        }
        (_, Err(error)) => {
            return found.push((Check::HeldLabels, unread(Source::Leases, &error.into())));
        }
    };
    let labelled = labelled["items"].as_array().map_or(&[][..], Vec::as_slice);
    let may_be_on = |(check, found): &(Check, Discovery)| match found {
        Discovery::Policy { mode, .. } => {
            *check == Check::NodePolicy && matches!(mode, Enforcement::On(_))
        }
        Discovery::PolicyUnread { .. } => true,
        _ => false,
    };
    let may_be_on = found.iter().any(may_be_on);
    let stale = stale_labels(session, labelled, &leases, fix).await;
    found.push((Check::HeldLabels, stale));
    // After the repair: the hold may have replaced a lock whose label was removed.
    let unlabelled = match may_be_on {
        true => unlabelled(session, &leases).await,
        false => Vec::new(),
    };
    if !unlabelled.is_empty() {
        found.push((Check::HeldLabels, Discovery::Unlabelled(unlabelled)));
    }
}

/// The Nodes whose held label belongs to a lock that has ended or expired. If its holder renews an expired lock meanwhile,
/// only its label is missing.
async fn stale_labels(
    session: &Session<'_>,
    labelled: &[Value],
    leases: &HashMap<String, NodeLease>,
    fix: bool,
) -> Discovery {
    let stale = labelled.iter().filter_map(|node| {
        let metadata = &node["metadata"];
        let name = metadata["name"].as_str()?;
        let found = metadata["annotations"]["kubectl-maint.dev/held-lock-id"].as_str();
        (!is_current(session, leases.get(name), found)).then(|| (name.to_owned(), found))
    });
    let stale: Vec<(String, Option<&str>)> = stale.collect();
    if stale.is_empty() {
        return Discovery::Labels(labelled.len());
    }
    if !fix {
        return Discovery::StaleLabels(stale.into_iter().map(|(node, _)| node).collect());
    }
    let (mut removed, mut left, mut why) = (Vec::new(), Vec::new(), None);
    for (node, lock_id) in stale {
        if lock_id.is_none() {
            // It was not written by a hold.
            left.push(node);
            continue;
        }
        match session.remove_keys(&node, None).await {
            Ok(KeysRemoved::Done(_)) => removed.push(node),
            Ok(KeysRemoved::Nothing | KeysRemoved::StillHeld) => {}
            Err(error) => {
                left.push(node);
                why = Some(error.to_string());
            }
        }
    }
    match (left.is_empty(), removed.is_empty()) {
        (true, true) => Discovery::Labels(labelled.len()),
        (true, false) => Discovery::LabelsRemoved(removed),
        (false, _) => Discovery::LabelsLeft { nodes: left, why },
    }
}

/// Whether the lock with this id stands, and has not expired.
fn is_current(session: &Session<'_>, lease: Option<&NodeLease>, lock_id: Option<&str>) -> bool {
    let now = session.locks.server_time().now();
    lease.is_some_and(|lease| {
        let id = lease.lock_id().map(|id| id.to_string());
        id.as_deref() == lock_id && lease.state(now).is_locked()
    })
}

/// The nodes on hold whose Nodes lack the held label, if this user could have written it.
async fn unlabelled(session: &Session<'_>, leases: &HashMap<String, NodeLease>) -> Vec<String> {
    if !may(session, ("", "nodes", "", "patch"))
        .await
        .is_ok_and(|may| may)
    {
        return Vec::new();
    }
    let mut nodes = Vec::new();
    for (node, _) in leases.iter().filter(|(_, lease)| lease.is_hold()) {
        let row = session
            .locks
            .see_node(node)
            .await
            .ok()
            .and_then(NodeLookup::into_row);
        if row.is_some_and(|row| !row.labels.contains_key(HELD)) {
            nodes.push(node.clone());
        }
    }
    nodes.sort();
    nodes
}

fn unread(what: Source, failure: &Failure) -> Discovery {
    let is_forbidden = failure.api().is_some_and(ApiError::is_forbidden);
    let error = failure.to_string();
    Discovery::Unread {
        what,
        is_forbidden,
        error,
    }
}
