//! `uninstall`: removes what `install` created, except the namespace with the Leases.

use clap::Args;
use futures::join;
use k8s_openapi::api::core::v1::Node;
use maintenance_lease::NodeLease;
use node_keys::{NodeKeys, clear, has_ended_id};
use pod_safety::cluster::Reader;
use policies::{Error, Installed, Manifest, Refusal};

use crate::error::Failure;
use crate::exit::Code;
use crate::run::elapsed::show_elapsed;
use crate::run::session::{Session, Start};
use crate::words::keys;
use crate::words::policies as words;

/// Remove the policies, the roles, and what locks set on Nodes
///
/// Switches the policies off, waits until the server refuses nothing, and then deletes the policies,
/// the FlowSchema and the roles. The namespace and its Leases stay, and so does every lock. Users lose
/// the rights that these roles gave them.
///
/// Also removes the held label, its annotations and the opt-outs from Nodes. Nodes that a lock has cordoned stay
/// cordoned, unless the lock has ended or expired.
///
/// Changes nothing if Argo CD, Flux, Helm or another tool manages one of the objects.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  kubectl maint uninstall")]
pub(crate) struct UninstallArgs {
    /// Answer yes to the confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
}

pub(crate) async fn run(args: &UninstallArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let session = start.open_for_checks().await?;
    let requests = session.locks.requests();
    let mut installed = Installed::read(requests, |manifest| !manifest.is_namespace()).await?;
    installed.must_be_ours()?;
    installed.objects.retain(|(_, found)| found.is_some());
    let terminal = session.terminal;
    let nodes = match NodesWithKeys::read(&session).await {
        Err(failure) if installed.objects.is_empty() => return Err(failure),
        Ok(nodes) if installed.objects.is_empty() && nodes.names.is_empty() => {
            terminal.remark(words::NOTHING_INSTALLED);
            return Ok(Code::DONE);
        }
        nodes => nodes,
    };
    installed.may_delete().await?;
    let (nodes, unread) = match nodes {
        Ok(nodes) => (nodes, Code::DONE),
        Err(failure) => {
            terminal.warn(keys::not_cleared(&failure));
            (NodesWithKeys::default(), Code::ERROR)
        }
    };
    let count = installed.objects.len();
    let (facts, question) =
        words::uninstall(&session.place(), count, nodes.protected, nodes.locked);
    terminal.confirm(&facts, question, args.yes).await?;
    let mut deleted = 0;
    let result = remove_all(&session, &installed, &nodes, &mut deleted).await;
    if result.is_err() && deleted > 0 {
        terminal.remark(words::partly_uninstalled(deleted, count, session.program));
    }
    result.map(|code| code.worse(unread))
}

/// The Nodes on which locks wrote something.
#[derive(Default)]
struct NodesWithKeys {
    names: Vec<String>,
    /// How many of them have more than the id of a lock that has ended.
    protected: usize,
    /// How many locks stand, also on other Nodes.
    locked: usize,
}

impl NodesWithKeys {
    /// Reads the Nodes and the Leases.
    ///
    /// # Errors
    /// If one of them can't be listed.
    async fn read(session: &Session<'_>) -> Result<Self, Failure> {
        let with_keys = |node: Node| {
            let (keys, has_ended_id) = (NodeKeys::on(&node), has_ended_id(&node));
            Some((node.metadata.name?, keys, has_ended_id))
        };
        let reader = Reader::new(session.locks.requests().clone());
        let (nodes, leases) = join!(reader.select_nodes(None, with_keys), session.locks.list());
        let (nodes, leases) = (nodes?, leases?);
        let now = session.locks.server_time().now();
        let stands = |lease: &NodeLease| lease.state(now).is_locked();
        let mut found = Self {
            locked: leases.values().filter(|lease| stands(lease)).count(),
            ..Self::default()
        };
        for (name, mut keys, has_ended_id) in nodes {
            // The cordon of a lock that stands is not removed.
            keys.cordon &= !leases.get(&name).is_some_and(stands);
            found.protected += usize::from(!keys.is_empty());
            if has_ended_id || !keys.is_empty() {
                found.names.push(name);
            }
        }
        Ok(found)
    }

    /// Removes what locks wrote. Returns whether nothing is left.
    async fn clear(&self, session: &Session<'_>) -> bool {
        let mut is_done = true;
        for node in &self.names {
            match clear(&session.locks, node, true).await {
                Ok(Some(removed)) if !removed.is_empty() => {
                    let removed = keys::removed(node, &removed);
                    session.terminal.result(removed);
                }
                Ok(_) => {}
                Err(error) => {
                    is_done = false;
                    let error = Failure::from(error);
                    session.terminal.warn(keys::stay(node, &error));
                }
            }
        }
        is_done
    }
}

/// Removes everything, and counts the deleted objects.
///
/// # Errors
/// If an object can't be deleted, or if the policies still refuse writes without their bindings.
async fn remove_all(
    session: &Session<'_>,
    installed: &Installed<'_>,
    nodes: &NodesWithKeys,
    deleted: &mut usize,
) -> Result<Code, Failure> {
    let mut delete = async |manifest: &Manifest| -> Result<(), Failure> {
        if installed.delete(manifest).await? {
            let name = manifest.full_name();
            session.terminal.result(format!("{name} deleted"));
        }
        *deleted += 1;
        Ok(())
    };
    // Without their bindings, the policies have no effect.
    for (binding, _) in installed.bindings() {
        delete(binding).await?;
    }
    if !installed.objects.is_empty() {
        let is_off = installed.until_enforced(false);
        let unchecked =
            match show_elapsed(session.terminal, words::WAITING_FOR_POLICIES, is_off).await {
                Err(Error::Refused(Refusal::Unchecked { error, .. })) => Some(error),
                checked => checked?,
            };
        if let Some(error) = unchecked {
            session.terminal.warn(words::not_checked(&error));
        }
    }
    // Before the roles, which may have the right to write Nodes.
    let is_clear = nodes.clear(session).await;
    let others = installed.objects.iter().map(|(manifest, _)| manifest);
    for manifest in others.filter(|manifest| !manifest.is_binding()) {
        delete(manifest).await?;
    }
    Ok(if is_clear { Code::DONE } else { Code::ERROR })
}
