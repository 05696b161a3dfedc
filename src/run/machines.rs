//! The opt-outs of a lock on the Machine of its Node, which may be in another cluster.

use std::collections::BTreeSet;

use maintenance_lease::protocol::identity;
use maintenance_lease::{Error, NodeLease};
use other_tools::{
    Activity, Finding, Machine, MachineLock, MachineRecord, MachineRef, OptOutsRemoved, OptOutsSet,
    machines_with_opt_outs, read_machine, remove_machine_opt_outs, set_machine_opt_outs,
};

use super::management::ManagementCluster;
use super::session::Session;
use crate::error::Failure;
use crate::text::escape;
use crate::words::machine::{self as words, Left};
use crate::words::{failure, node_keys};

/// A Machine that was read, and its cluster.
pub(crate) struct MachineSeen {
    machine: Machine,
    cluster: ManagementCluster,
}

impl MachineSeen {
    /// The record of it for the Node.
    pub(crate) fn record(&self) -> MachineRecord {
        let MachineRef {
            api,
            namespace,
            name,
            ..
        } = &self.machine.of;
        MachineRecord {
            context: self.cluster.context.clone(),
            server: self.cluster.server.clone(),
            tool: api.tool.to_owned(),
            namespace: namespace.clone(),
            name: name.clone(),
            uid: self.machine.uid().to_owned(),
        }
    }

    /// What is done to it in spite of a lock.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        self.machine.findings()
    }
}

/// Why something was not set elsewhere than on the Node.
pub(super) struct NotSet {
    /// In words.
    pub(super) cause: String,
    /// Nothing was written, and nothing will be.
    pub(super) is_certain: bool,
}

impl NotSet {
    pub(super) fn refused(cause: String) -> Self {
        Self {
            cause,
            is_certain: true,
        }
    }

    pub(super) fn of(error: Error) -> Self {
        Self {
            is_certain: !matches!(&error, Error::Api(error) if error.leaves_writes_unknown()),
            cause: words_of(error),
        }
    }

    /// The warning about `tool`.
    pub(super) fn warning(&self, tool: &str) -> String {
        match self.is_certain {
            true => words::unprotected(tool, Some(&self.cause)),
            false => words::may_be_unprotected(tool, &self.cause),
        }
    }
}

/// A Machine with opt-outs of a lock: the Node that it belongs to, its record, and the id of the lock.
pub(crate) type OptedOut = (String, MachineRecord, String);

impl Session<'_> {
    /// Reads the Machine of `node` in the management cluster that was given.
    ///
    /// # Errors
    /// Why opt-outs can't be set on it, in words; `None`: no management cluster was given.
    pub(crate) async fn see_machine(
        &self,
        node: &str,
        machine: &MachineRef,
    ) -> Result<MachineSeen, Option<String>> {
        let context = self.management.given.as_deref().ok_or(None)?;
        let cluster = self.management.open(context).await.map_err(Some)?;
        let read = read_machine(&cluster.requests, machine).await;
        let read = read.map_err(Error::from);
        let read = self.management.note_silence(context, read).await;
        match read.map_err(|error| Some(unread(error, context, machine.api.tool)))? {
            None => Err(Some(words::missing(machine, context))),
            Some(found) if !found.is_of(node) => Err(Some(words::of_another(machine, context))),
            Some(machine) => Ok(MachineSeen { machine, cluster }),
        }
    }

    /// What stands against a lock that sets opt-outs on the Machine of `node`.
    pub(super) async fn machine_findings(&self, node: &str, machine: &MachineRef) -> Vec<Finding> {
        match self.see_machine(node, machine).await {
            Ok(seen) => seen.findings(),
            Err(cause) => vec![Finding {
                activity: Activity::MachineUnprotected,
                key: machine.api.tool.to_owned(),
                since: None,
                detail: cause,
            }],
        }
    }

    /// Sets the opt-outs of the lock in `lease` on a Machine, of which its Node has a record.
    ///
    /// # Errors
    /// Why they are not set.
    pub(super) async fn set_machine_opt_outs(
        &self,
        lease: &NodeLease,
        seen: &MachineSeen,
        is_held: impl AsyncFn() -> Result<bool, Error>,
    ) -> Result<(), NotSet> {
        let lock_id = lease.lock_id().map(|id| id.to_string());
        let lock = MachineLock {
            lock_id: lock_id.as_deref().unwrap_or_default(),
            owner: lease.holder().map(identity::person).unwrap_or_default(),
        };
        let MachineSeen { machine, cluster } = seen;
        let setting = set_machine_opt_outs(&cluster.requests, machine.clone(), lock, is_held);
        let set = self
            .management
            .note_silence(&cluster.context, setting.await);
        match set.await {
            Ok(OptOutsSet::Done) => {
                let (node, is_hold) = (lease.node(), lease.is_hold());
                let said = words::protected(node, &machine.of, &cluster.context, is_hold);
                self.terminal.remark(said);
                Ok(())
            }
            Ok(OptOutsSet::Gone) => Err(NotSet::refused(words::GONE.to_owned())),
            Ok(OptOutsSet::LockEnded) => {
                Err(NotSet::refused(node_keys::lock_ended(lease.is_hold())))
            }
            Err(error) => Err(NotSet::of(error)),
        }
    }

    /// The Machines with opt-outs of a lock. Each of `machines` is named by this Node. The management cluster may have others,
    /// also of the same name.
    ///
    /// # Errors
    /// In words, if the management cluster that was given can't be reached, or has no Machines.
    pub(crate) async fn machines_with_opt_outs(
        &self,
        machines: &[(&str, &MachineRef)],
    ) -> Result<Vec<OptedOut>, String> {
        let Some(context) = self.management.given.as_deref() else {
            return Ok(Vec::new());
        };
        let cluster = self.management.open(context).await?;
        let mut opted_out = Vec::new();
        let places = machines.iter().map(|(_, of)| (of.api.tool, &*of.namespace));
        for (tool, namespace) in places.collect::<BTreeSet<_>>() {
            let mut of_place = machines.iter();
            let is_there =
                |(_, of): &&(&str, &MachineRef)| of.api.tool == tool && of.namespace == namespace;
            let Some((_, of)) = of_place.find(is_there) else {
                continue;
            };
            let found = machines_with_opt_outs(&cluster.requests, of.api, namespace).await;
            for machine in found.map_err(|error| unread(error.into(), context, tool))? {
                let is_it =
                    |(node, of): &(&str, &MachineRef)| *node == machine.node() && machine.is_at(of);
                if !machines.iter().any(is_it) {
                    continue;
                }
                let lock_id = machine.lock_id().unwrap_or_default().to_owned();
                let node = machine.node().to_owned();
                let cluster = cluster.clone();
                let record = MachineSeen { machine, cluster }.record();
                opted_out.push((node, record, lock_id));
            }
        }
        Ok(opted_out)
    }

    /// Removes what locks set on the Machine in `record`, before the lock `ended` ends, and returns whether nothing is left there.
    /// Otherwise, it says what is left.
    pub(crate) async fn remove_machine_opt_outs(
        &self,
        node: &str,
        record: &MachineRecord,
        ended: &str,
        shown: impl AsyncFn() -> Result<Option<String>, Error>,
    ) -> bool {
        if !record.is_readable() {
            let (warning, hint) = words::unreadable(node, self.program);
            self.terminal.warn(warning);
            self.terminal.hint(hint);
            return true;
        }
        match self
            .try_remove_machine_opt_outs(node, record, ended, shown)
            .await
        {
            Ok(OptOutsRemoved::StillHeld) => false,
            Ok(_) => true,
            Err(cause) => {
                let (left, hint) = words::left(node, record, &cause, self.program);
                self.terminal.warn(left);
                self.terminal.hint(hint);
                false
            }
        }
    }

    async fn try_remove_machine_opt_outs(
        &self,
        node: &str,
        record: &MachineRecord,
        ended: &str,
        shown: impl AsyncFn() -> Result<Option<String>, Error>,
    ) -> Result<OptOutsRemoved, Left> {
        let machine = record.machine();
        let machine = machine.ok_or_else(|| Left::Failed(words::UNKNOWN_API.to_owned()))?;
        let mut failed = None;
        for context in self.contexts_of(record) {
            let removing = self.try_remove_in(&context, node, &machine, record, ended, &shown);
            match removing.await {
                Ok(removed) => return Ok(removed),
                Err(left) => failed = failed.or(Some(left)),
            }
        }
        Err(failed.unwrap_or_else(|| Left::Elsewhere {
            context: record.context.clone(),
        }))
    }

    /// The contexts in which the Machine in `record` may be: the one that was given, after the recorded one if that still leads
    /// to the recorded cluster. Without a given one, somebody else may have written the record, or have another context of this
    /// name.
    fn contexts_of(&self, record: &MachineRecord) -> Vec<String> {
        let leads_there =
            |context: &str| self.management.server_of(context).as_ref() == Ok(&record.server);
        let given = self.management.given.clone();
        let is_enough = given.as_deref().is_some_and(leads_there);
        let recorded = Some(record.context.clone())
            .filter(|recorded| !is_enough && (given.is_none() || leads_there(recorded)));
        recorded.into_iter().chain(given).collect()
    }

    async fn try_remove_in(
        &self,
        context: &str,
        node: &str,
        machine: &MachineRef,
        record: &MachineRecord,
        ended: &str,
        shown: impl AsyncFn() -> Result<Option<String>, Error>,
    ) -> Result<OptOutsRemoved, Left> {
        let elsewhere = || Left::Elsewhere {
            context: context.to_owned(),
        };
        let server = self
            .management
            .server_of(context)
            .map_err(Left::NoContext)?;
        let is_given = self.management.given.as_deref() == Some(context);
        if !is_given && server != record.server {
            return Err(elsewhere());
        }
        let cluster = self.management.open(context).await.map_err(Left::Failed)?;
        let removing =
            remove_machine_opt_outs(&cluster.requests, node, machine, record, ended, shown);
        let removed = self.management.note_silence(context, removing.await).await;
        match removed.map_err(|error| Left::Failed(words_of(error)))? {
            OptOutsRemoved::Gone if server != record.server => Err(elsewhere()),
            OptOutsRemoved::Copied => Err(Left::Copied {
                context: context.to_owned(),
            }),
            OptOutsRemoved::OfAnother => {
                self.terminal
                    .warn(words::not_removed(node, machine, context));
                Ok(OptOutsRemoved::OfAnother)
            }
            removed => Ok(removed),
        }
    }
}

/// Why Machines of `tool` can't be read in `context`, in words.
fn unread(error: Error, context: &str, tool: &str) -> String {
    match &error {
        Error::Api(api) if api.is_not_installed() => words::not_installed(context, tool),
        _ => words_of(error),
    }
}

pub(super) fn words_of(error: Error) -> String {
    let failure = Failure::from(error);
    let words = failure.api().map(failure::cause);
    words.unwrap_or_else(|| escape(&failure.to_string()))
}
