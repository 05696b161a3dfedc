//! The opt-outs of a lock on the Machine of its Node, which may be in another cluster.

use std::collections::BTreeSet;

use maintenance_lease::protocol::identity;
use maintenance_lease::{Error, NodeLease};
use other_tools::{
    Activity, Finding, Machine, MachineLock, MachineRecord, MachineRef, OptOutsRemoved, OptOutsSet,
    machines_with_opt_outs, read_machine, remove_machine_opt_outs, set_machine_opt_outs,
};

use super::management_cluster::ManagementCluster;
use super::session::Session;
use crate::error::ProtectionError;
use crate::words::machine as words;

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

/// A Machine with opt-outs of a lock: the Node that it belongs to, its record, and the id of the lock.
pub(crate) type OptedOut = (String, MachineRecord, String);

impl Session<'_> {
    /// Reads the Machine of `node` in the management cluster that was given.
    ///
    /// # Errors
    /// Why opt-outs can't be set on it.
    pub(crate) async fn see_machine(
        &self,
        node: &str,
        machine: &MachineRef,
    ) -> Result<MachineSeen, ProtectionError> {
        let given = self.management.given.as_deref();
        let context = given.ok_or(ProtectionError::NoManagementContext)?;
        let cluster = self.management.open(context).await?;
        let read = read_machine(&cluster.requests, machine).await;
        let read = read.map_err(Error::from);
        let read = self.management.note_silence(context, read).await;
        let seen = read.map_err(|error| unread(error, context, machine.api.tool))?;
        let (of, context) = (machine.clone(), cluster.context.clone());
        match seen {
            None => Err(ProtectionError::NoMachine { of, context }),
            Some(found) if !found.is_of(node) => {
                Err(ProtectionError::OfAnotherNode { of, context })
            }
            Some(machine) => Ok(MachineSeen { machine, cluster }),
        }
    }

    /// What stands against a lock that sets opt-outs on the Machine of `node`.
    pub(super) async fn machine_findings(&self, node: &str, machine: &MachineRef) -> Vec<Finding> {
        match self.see_machine(node, machine).await {
            Ok(seen) => seen.findings(),
            Err(error) => vec![Finding {
                activity: Activity::MachineUnprotected,
                key: machine.api.tool.to_owned(),
                since: None,
                detail: Some(error.to_string()),
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
    ) -> Result<(), ProtectionError> {
        let lock_id = lease.lock_id().map(|id| id.to_string());
        let lock = MachineLock {
            lock_id: lock_id.as_deref().unwrap_or_default(),
            owner: lease.holder().map(identity::person).unwrap_or_default(),
        };
        let (is_hold, is_held) = (lease.is_hold(), || self.still_shows(lease));
        let MachineSeen { machine, cluster } = seen;
        let setting = set_machine_opt_outs(&cluster.requests, machine.clone(), lock, is_held);
        let set = self
            .management
            .note_silence(&cluster.context, setting.await);
        match set.await {
            Ok(OptOutsSet::Done) => {
                let said = words::protected(lease.node(), &machine.of, &cluster.context, is_hold);
                self.terminal.remark(said);
                Ok(())
            }
            Ok(OptOutsSet::Gone) => Err(ProtectionError::MachineGone),
            Ok(OptOutsSet::LockEnded) => Err(ProtectionError::LockEnded { is_hold }),
            Err(error) => Err(error.into()),
        }
    }

    /// The Machines with opt-outs of a lock. Each of `machines` is named by this Node. The management cluster may have others,
    /// also of the same name.
    ///
    /// # Errors
    /// If the management cluster that was given can't be reached, or has no Machines.
    pub(crate) async fn machines_with_opt_outs(
        &self,
        machines: &[(&str, &MachineRef)],
    ) -> Result<Vec<OptedOut>, ProtectionError> {
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
            Err(error) => {
                let (left, hint) = words::left(node, record, &error, self.program);
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
    ) -> Result<OptOutsRemoved, ProtectionError> {
        let machine = record.machine().ok_or(ProtectionError::UnknownApi)?;
        let mut failed = None;
        for context in self.contexts_of(record) {
            let removing = self.try_remove_in(&context, node, &machine, record, ended, &shown);
            match removing.await {
                Ok(removed) => return Ok(removed),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Err(failed.unwrap_or_else(|| in_other_cluster(record, &record.context)))
    }

    /// The contexts in which the Machine in `record` may be: the one that was given, after the recorded one if that still leads
    /// to the recorded cluster. Without a given one, somebody else may have written the record, or have another context of this
    /// name.
    fn contexts_of(&self, record: &MachineRecord) -> Vec<String> {
        let leads_there = |context: &str| {
            let server = self.management.server_of(context);
            server.is_ok_and(|server| server == record.server)
        };
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
    ) -> Result<OptOutsRemoved, ProtectionError> {
        let server = self.management.server_of(context).map_err(|error| {
            let server = record.server.clone();
            ProtectionError::NoContext { error, server }
        })?;
        let is_given = self.management.given.as_deref() == Some(context);
        if !is_given && server != record.server {
            return Err(in_other_cluster(record, context));
        }
        let cluster = self.management.open(context).await?;
        let removing =
            remove_machine_opt_outs(&cluster.requests, node, machine, record, ended, shown);
        let removed = self.management.note_silence(context, removing.await).await;
        let context = context.to_owned();
        match removed? {
            OptOutsRemoved::Gone if server != record.server => {
                Err(in_other_cluster(record, &context))
            }
            OptOutsRemoved::Copied => Err(ProtectionError::Copied { context }),
            OptOutsRemoved::OfAnother => {
                let of = machine.clone();
                let error = ProtectionError::OfAnotherNode { of, context };
                self.terminal.warn(words::not_removed(node, &error));
                Ok(OptOutsRemoved::OfAnother)
            }
            removed => Ok(removed),
        }
    }
}

/// The Machine in `record` is not in `context`.
fn in_other_cluster(record: &MachineRecord, context: &str) -> ProtectionError {
    ProtectionError::OtherCluster {
        context: context.to_owned(),
        server: record.server.clone(),
    }
}

/// Why Machines of `tool` can't be read in `context`.
fn unread(error: Error, context: &str, tool: &'static str) -> ProtectionError {
    match error {
        Error::Api(error) if error.is_not_installed() => ProtectionError::NotInstalled {
            context: context.to_owned(),
            tool,
        },
        error => error.into(),
    }
}
