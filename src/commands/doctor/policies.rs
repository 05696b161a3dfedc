//! What the policies do, and whether they are those of this release.

use policies::{
    Enforcement, Error, Installed, Manifest, Mode, Refusal, any_node, broken_rules,
    held_without_lock, refuses, wrong_time,
};
use serde_json::Value;

use super::metrics;
use super::unread::unread;
use crate::run::session::Session;
use crate::words::doctor::finding::{Check, Finding, Source};

/// What the policies do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InForce {
    /// Whether the lease policy may be installed.
    pub(super) has_lease_policy: bool,
    /// Whether the lease policy refuses anything.
    pub(super) lease: bool,
    /// Whether the node policy may check anything.
    pub(super) node: bool,
}

/// The mode of each policy, whether the server enforces it, and whether the objects are those of this release.
pub(super) async fn check(session: &Session<'_>, found: &mut Vec<(Check, Finding)>) -> InForce {
    let mut in_force = InForce::default();
    let wanted = |manifest: &Manifest| manifest.is_binding() || manifest.is_policy();
    let installed = match Installed::read(session.locks.requests(), wanted).await {
        Ok(installed) => installed,
        Err(Error::Refused(Refusal::NoAdmission)) => {
            found.push((Check::Policies, Finding::NoAdmission));
            return in_force;
        }
        Err(error) if error.is_forbidden() => {
            let refuses = refuses_lease(session).await;
            found.push((Check::Policies, Finding::PolicyUnread { refuses }));
            in_force.has_lease_policy = true;
            in_force.lease = refuses == Some(true);
            in_force.node = true;
            return in_force;
        }
        Err(error) => {
            let unread = unread(Source::Policies, &error.into());
            found.push((Check::Policies, unread));
            in_force.has_lease_policy = true;
            return in_force;
        }
    };
    let metrics = metrics_if_needed(session, &installed, found).await;
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
        match check {
            Check::NodePolicy => in_force.node = matches!(mode, Enforcement::On(_)),
            _ => {
                in_force.has_lease_policy |= mode != Enforcement::NotInstalled;
                in_force.lease |= is_deny;
            }
        }
        let broken = metrics.as_ref();
        let broken = broken.and_then(|metrics| broken_rules(metrics, binding.name()));
        found.push((
            check,
            Finding::Policy {
                mode,
                refuses,
                broken,
            },
        ));
    }
    let differs = |(manifest, found): &(Manifest, Option<Value>)| {
        let found = found.as_ref()?;
        (!manifest.is_current(found)).then(|| manifest.full_name())
    };
    let others: Vec<String> = installed.objects.iter().filter_map(differs).collect();
    if !others.is_empty() {
        found.push((Check::Release, Finding::OtherRelease(others)));
    } else if installed.objects.iter().any(|(_, found)| found.is_some()) {
        found.push((Check::Release, Finding::SameRelease));
    }
    in_force
}

/// The metrics with the number of broken rules, if a policy admits what breaks a rule.
async fn metrics_if_needed(
    session: &Session<'_>,
    installed: &Installed<'_>,
    found: &mut Vec<(Check, Finding)>,
) -> Option<String> {
    let mut bindings = installed
        .bindings()
        .filter(|(binding, _)| binding.has_mode());
    bindings.find(|(binding, _)| {
        let mode = installed.enforcement(binding);
        matches!(mode, Enforcement::On(Mode::Audit | Mode::Warn))
    })?;
    let metrics = metrics::read(session).await;
    let unread = |unread| found.push((Check::Policies, unread));
    metrics.map_err(unread).ok()
}

/// Whether the server refuses a Lease that breaks a rule; `None` if the dry run fails for another reason.
async fn refuses_lease(session: &Session<'_>) -> Option<bool> {
    refuses(session.locks.requests(), &wrong_time()).await
}

/// The same for a Node, if there is one.
async fn refuses_node(session: &Session<'_>) -> Option<bool> {
    let requests = session.locks.requests();
    let node = any_node(requests).await.ok()??;
    refuses(requests, &held_without_lock(&node)).await
}
