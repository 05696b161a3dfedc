//! The opt-outs of a lock on the Machine of its Node, which may be in another cluster: how it is found there.

use std::collections::BTreeSet;

use maintenance_lease::{ApiError, Error};

use crate::findings::Finding;
use crate::left_behind::LeftBehind;
use crate::machine::{Machine, MachineRef};
use crate::machine_keys::{
    OptOutsRemoved, machines_with_opt_outs, read_machine, remove_machine_opt_outs,
};
use crate::machine_record::MachineRecord;
use crate::management::{ManagementCluster, ManagementClusters};
use crate::protection_writer::ProtectionWriter;
use crate::write_error::WriteError;

/// A Machine that was read, and its cluster.
pub struct MachineSeen {
    pub(crate) machine: Machine,
    pub(crate) cluster: ManagementCluster,
}

impl MachineSeen {
    /// What is done to it in spite of a lock.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        self.machine.findings()
    }

    /// The context of its cluster.
    pub(crate) fn context(&self) -> &str {
        &self.cluster.context
    }

    /// The record of it for the Node.
    pub(crate) fn record(&self) -> MachineRecord {
        let of = &self.machine.of;
        MachineRecord {
            context: self.cluster.context.clone(),
            server: self.cluster.server.clone(),
            tool: of.api.tool.to_owned(),
            namespace: of.namespace.clone(),
            name: of.name.clone(),
            uid: self.machine.uid().to_owned(),
        }
    }
}

/// A Machine with opt-outs of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptedOutMachine {
    /// The Node that it belongs to.
    pub node: String,
    /// The record of it for the Node.
    pub record: MachineRecord,
    /// The id of the lock.
    pub lock_id: String,
}

impl<M: ManagementClusters> ProtectionWriter<'_, M> {
    /// Reads the Machine of `node` in the management cluster that was given.
    ///
    /// # Errors
    /// Why opt-outs can't be set on it.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer and changes nothing.
    pub async fn see_machine(
        &self,
        node: &str,
        machine: &MachineRef,
    ) -> Result<MachineSeen, WriteError> {
        let given = self.management.given();
        let context = given.ok_or(WriteError::NoManagementContext)?;
        let cluster = self.open(context).await?;
        let read = read_machine(&cluster.requests, machine).await;
        let read = self.noting_silence(context, read.map_err(Error::from));
        let seen = read.map_err(|error| unread(error, context, machine.api.tool))?;
        let (of, context) = (machine.clone(), cluster.context.clone());
        match seen {
            None => Err(WriteError::NoMachine { of, context }),
            Some(found) if !found.is_of(node) => Err(WriteError::OfAnotherNode { of, context }),
            Some(machine) => Ok(MachineSeen { machine, cluster }),
        }
    }

    /// The Machines with opt-outs of a lock. Each of `machines` is named by this Node. The management cluster may have others,
    /// also of the same name.
    ///
    /// # Errors
    /// If the management cluster that was given can't be reached, or has no Machines.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer and changes nothing.
    pub async fn machines_with_opt_outs(
        &self,
        machines: &[(&str, &MachineRef)],
    ) -> Result<Vec<OptedOutMachine>, WriteError> {
        let Some(context) = self.management.given() else {
            return Ok(Vec::new());
        };
        let cluster = self.open(context).await?;
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
                opted_out.push(OptedOutMachine {
                    node,
                    record,
                    lock_id,
                });
            }
        }
        Ok(opted_out)
    }

    /// Removes what locks set on the Machine in `record`, before the lock `ended` ends, and returns whether nothing is left
    /// there. What is left is passed to `report`.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer. The opt-outs may still be removed.
    pub async fn remove_machine_opt_outs(
        &self,
        node: &str,
        record: &MachineRecord,
        ended: &str,
        report: &dyn Fn(LeftBehind),
    ) -> bool {
        if !record.is_readable() {
            report(LeftBehind::UnreadableRecord);
            return true;
        }
        match self.remove_from_recorded(node, record, ended).await {
            Ok(Removal::Done) => true,
            Ok(Removal::StillHeld) => false,
            Ok(Removal::OfAnother(error)) => {
                report(LeftBehind::OnMachineOfAnother(error));
                true
            }
            Err(error) => {
                let record = record.clone();
                report(LeftBehind::OnMachine { record, error });
                false
            }
        }
    }

    /// Tries the contexts in which the Machine in `record` may be.
    async fn remove_from_recorded(
        &self,
        node: &str,
        record: &MachineRecord,
        ended: &str,
    ) -> Result<Removal, WriteError> {
        let machine = record.machine().ok_or(WriteError::UnknownApi)?;
        let mut failed = None;
        for context in contexts_of(record, self.management) {
            let removing = self.remove_in(&context, node, &machine, record, ended);
            match removing.await {
                Ok(removed) => return Ok(removed),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Err(failed.unwrap_or_else(|| in_other_cluster(record, &record.context)))
    }

    async fn remove_in(
        &self,
        context: &str,
        node: &str,
        machine: &MachineRef,
        record: &MachineRecord,
        ended: &str,
    ) -> Result<Removal, WriteError> {
        let server = self.management.server_of(context).map_err(|error| {
            let server = record.server.clone();
            WriteError::NoContext { error, server }
        })?;
        let is_given = self.management.given() == Some(context);
        if !is_given && server != record.server {
            return Err(in_other_cluster(record, context));
        }
        let cluster = self.open(context).await?;
        let shown = || self.current_lock_id(node);
        let removed =
            remove_machine_opt_outs(&cluster.requests, node, machine, record, ended, shown).await;
        let removed = self.noting_silence(context, removed)?;
        let context = context.to_owned();
        match removed {
            OptOutsRemoved::Gone if server != record.server => {
                Err(in_other_cluster(record, &context))
            }
            OptOutsRemoved::Done | OptOutsRemoved::Gone => Ok(Removal::Done),
            OptOutsRemoved::StillHeld => Ok(Removal::StillHeld),
            OptOutsRemoved::OfAnother => {
                let of = machine.clone();
                Ok(Removal::OfAnother(WriteError::OfAnotherNode {
                    of,
                    context,
                }))
            }
            OptOutsRemoved::Copied => Err(WriteError::Copied { context }),
        }
    }

    async fn open(&self, context: &str) -> Result<ManagementCluster, WriteError> {
        let opening = self.management.open(context);
        opening.await.map_err(WriteError::Connect)
    }

    /// The `answer` of the cluster behind `context`, which is noted if none came in time.
    pub(crate) fn noting_silence<T>(
        &self,
        context: &str,
        answer: Result<T, Error>,
    ) -> Result<T, Error> {
        if let Err(Error::Api(ApiError::TimedOut(_))) = &answer {
            self.management.note_silence(context);
        }
        answer
    }
}

/// What became of the opt-outs on a Machine.
enum Removal {
    /// They are removed, or the Machine is gone.
    Done,
    /// They belong to the lock that the Lease shows, and stay.
    StillHeld,
    /// The Machine is that of another node, or of none.
    OfAnother(WriteError),
}

/// The contexts in which the Machine in `record` may be: the one that was given, after the recorded one if that still leads to
/// the recorded cluster. Without a given one, the recorded one: it is checked there, because somebody else may have written the
/// record, or have another context of this name.
fn contexts_of(record: &MachineRecord, management: &impl ManagementClusters) -> Vec<String> {
    let leads_there = |context: &str| {
        let server = management.server_of(context);
        server.is_ok_and(|server| server == record.server)
    };
    let given = management.given();
    let is_enough = given.is_some_and(leads_there);
    let recorded = Some(&*record.context)
        .filter(|recorded| !is_enough && (given.is_none() || leads_there(recorded)));
    let contexts = recorded.into_iter().chain(given);
    contexts.map(ToOwned::to_owned).collect()
}

/// The Machine in `record` is not in `context`.
fn in_other_cluster(record: &MachineRecord, context: &str) -> WriteError {
    WriteError::OtherCluster {
        context: context.to_owned(),
        server: record.server.clone(),
    }
}

/// Why Machines of `tool` can't be read in `context`.
fn unread(error: Error, context: &str, tool: &'static str) -> WriteError {
    match error {
        Error::Api(error) if error.is_not_installed() => WriteError::NotInstalled {
            context: context.to_owned(),
            tool,
        },
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::management::ConnectFailure;

    /// Contexts, each with the server that it leads to, of which the user named one or none.
    struct Contexts(
        Option<&'static str>,
        &'static [(&'static str, &'static str)],
    );

    impl ManagementClusters for Contexts {
        fn given(&self) -> Option<&str> {
            self.0
        }

        fn server_of(&self, context: &str) -> Result<String, ConnectFailure> {
            let found = self.1.iter().find(|(name, _)| *name == context);
            let missing = || Arc::new(std::io::Error::other("no such context")) as ConnectFailure;
            Ok(found.ok_or_else(missing)?.1.to_owned())
        }

        async fn open(&self, context: &str) -> Result<ManagementCluster, ConnectFailure> {
            panic!("{context} was opened")
        }

        fn note_silence(&self, _: &str) {}
    }

    #[test]
    fn a_recorded_machine_is_looked_for_where_the_record_or_the_user_says() {
        let record = MachineRecord {
            context: "mgmt".to_owned(),
            server: "https://mgmt".to_owned(),
            ..MachineRecord::default()
        };
        for (given, contexts, expected) in [
            // What is recorded is checked when it is opened.
            (None, &[("mgmt", "https://mgmt")][..], &["mgmt"][..]),
            (None, &[("mgmt", "https://other")], &["mgmt"]),
            (None, &[], &["mgmt"]),
            // The given context leads to the recorded cluster.
            (
                Some("new"),
                &[("mgmt", "https://mgmt"), ("new", "https://mgmt")],
                &["new"],
            ),
            // It may lead there by another URL.
            (
                Some("new"),
                &[("mgmt", "https://mgmt"), ("new", "https://other")],
                &["mgmt", "new"],
            ),
            // The recorded name is that of another cluster, or of none.
            (
                Some("new"),
                &[("mgmt", "https://third"), ("new", "https://other")],
                &["new"],
            ),
            (Some("new"), &[("new", "https://other")], &["new"]),
        ] {
            let found = contexts_of(&record, &Contexts(given, contexts));
            assert_eq!(found, expected, "{given:?} {contexts:?}");
        }
    }
}
