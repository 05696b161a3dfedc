//! What a lock sets besides its Lease, in the order of the writes.
//!
//! 1. An earlier Machine in the record on the Node is cleared: there is one record.
//! 2. The Node: the label, the opt-outs, the cordon, and the records of what follows.
//! 3. The Machine.
//! 4. The medik8s Lease.
//! 5. Records of what was certainly refused are removed again.

use k8s_openapi::api::core::v1::Node;
use maintenance_lease::NodeLease;
use maintenance_lease::protocol::identity;

use crate::apply::{Conflict, KeysOfLock, remove_records};
use crate::findings::{Finding, cordon};
use crate::keys_on_node::KeysOnNode;
use crate::left_behind::LeftBehind;
use crate::machine::{MachineLock, MachineRef};
use crate::machine_keys::{OptOutsSet, set_machine_opt_outs};
use crate::machine_opt_outs::MachineSeen;
use crate::machine_record::MachineRecord;
use crate::management::ManagementClusters;
use crate::medik8s_lease::{LeaseHeld, hold_medik8s_lease};
use crate::node_keys::NodeKeys;
use crate::opt_outs::{MEDIK8S, OptOuts, machine_of};
use crate::other_objects::OtherObjects;
use crate::protection_writer::{ProtectionWriter, lock_id};
use crate::write_error::WriteError;

/// What was done to protect a node, or why it was not done.
#[derive(Debug)]
pub enum ProtectionStep {
    /// This is left of an earlier lock.
    Earlier(LeftBehind),
    /// The Node is labeled.
    Labeled {
        /// What is set on it.
        keys: NodeKeys,
        /// Somebody else has cordoned it, so it stays cordoned after the lock.
        stays_cordoned: bool,
        /// What is not set, because somebody else set it to another value.
        conflicts: Vec<Conflict>,
    },
    /// The Node is not labeled, and has no records. So nothing is set on other objects.
    NotLabeled(WriteError),
    /// This is done to the Machine in spite of the lock.
    MachineFinding(Finding),
    /// The Machine has opt-outs.
    MachineOptedOut {
        /// Which one.
        of: MachineRef,
        /// The context of its cluster.
        context: String,
    },
    /// The lock holds the medik8s Lease.
    Medik8sLeaseHeld,
    /// Nothing was written for this tool.
    NotTried {
        /// The tool.
        tool: &'static str,
        /// Why not.
        error: WriteError,
    },
    /// The write for this tool failed.
    NotSet {
        /// The tool.
        tool: &'static str,
        /// Why.
        error: WriteError,
    },
}

/// The result of [`ProtectionWriter::protect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtectionResult {
    /// The Node has the held label.
    pub is_labeled: bool,
    /// Each tool of the opt-outs leaves the node alone.
    pub is_opted_out: bool,
}

/// What is wanted for a lock, and where each step is reported.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    lease: &'a NodeLease,
    cordon: bool,
    opt_outs: &'a OptOuts,
    report: &'a dyn Fn(ProtectionStep),
}

/// What is to be written, by the last read of the Node.
#[derive(Default)]
struct Plan {
    /// On the Node, besides the label.
    keys: NodeKeys,
    /// Somebody else has cordoned the Node.
    has_cordon: bool,
    /// The Machine that gets opt-outs, or why it does not.
    machine: Option<(MachineRef, Result<MachineSeen, WriteError>)>,
    /// The tools with opt-outs on Machines that were named, and that have none for this Node.
    without_machine: Vec<&'static str>,
    /// What the Node had records of before.
    before: Option<OtherObjects>,
}

impl<M: ManagementClusters> ProtectionWriter<'_, M> {
    /// Labels the Node of the lock in `lease`, cordons it if `cordon` is set, and sets `opt_outs` on it, on its Machine and as
    /// its medik8s Lease. Each step is passed to `report` at once, since callers may stop waiting.
    ///
    /// # Caveats
    /// Dropping this future abandons the answers. What it was writing may still be set, unless the end of the lock removes it
    /// first.
    pub async fn protect(
        &self,
        lease: &NodeLease,
        cordon: bool,
        opt_outs: &OptOuts,
        report: &dyn Fn(ProtectionStep),
    ) -> ProtectionResult {
        let wanted = Wanted {
            lease,
            cordon,
            opt_outs,
            report,
        };
        let mut plan = Plan::default();
        let failure = match self.protect_node(wanted, &mut plan).await {
            Ok(conflicts) => {
                let mut keys = plan.keys.clone();
                for Conflict { key, .. } in &conflicts {
                    keys.labels.remove(key);
                    keys.annotations.remove(key);
                }
                report(ProtectionStep::Labeled {
                    keys,
                    stays_cordoned: plan.has_cordon,
                    conflicts,
                });
                None
            }
            Err(error) => {
                report(ProtectionStep::NotLabeled(error.clone()));
                Some(error)
            }
        };
        ProtectionResult {
            is_labeled: failure.is_none(),
            is_opted_out: self.protect_others(wanted, &plan, failure).await,
        }
    }

    /// Checks in a dry run whether the server would accept the Node write of [`protect`](Self::protect). `lease` is what the
    /// dry run of the lock returned. Machines and the medik8s Lease are not checked. Returns the keys that somebody else set to
    /// another value.
    ///
    /// # Errors
    /// Why the Node would not be labeled, or with `cordon` not cordoned.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer and changes nothing.
    pub async fn check(
        &self,
        lease: &NodeLease,
        cordon: bool,
        opt_outs: &OptOuts,
    ) -> Result<Vec<Conflict>, WriteError> {
        let checking = |cordon| {
            self.check_keys(lease, move |on| NodeKeys {
                cordon,
                ..opt_outs.keys(on)
            })
        };
        match checking(cordon).await {
            // Our policy may admit the cordon once the label of an earlier lock is replaced.
            Err(error) if cordon && error.is_by_our_policy() => checking(false).await,
            result => result,
        }
    }

    /// Writes the label, the opt-outs on the Node, the cordon and the records. They are in `plan` then.
    async fn protect_node(
        &self,
        wanted: Wanted<'_>,
        plan: &mut Plan,
    ) -> Result<Vec<Conflict>, WriteError> {
        match self.write_plan(wanted, plan).await {
            // A write that replaces the label of an earlier lock may not cordon.
            Err(error) if wanted.cordon && error.is_by_our_policy() => {
                let without_cordon = Wanted {
                    cordon: false,
                    ..wanted
                };
                self.write_plan(without_cordon, plan).await?;
                self.write_plan(wanted, plan).await
            }
            result => result,
        }
    }

    async fn write_plan(
        &self,
        wanted: Wanted<'_>,
        plan: &mut Plan,
    ) -> Result<Vec<Conflict>, WriteError> {
        let keys = async |on: &Node, id: &str| {
            self.plan(wanted, plan, on, id).await;
            plan.keys.clone()
        };
        self.write_keys(wanted.lease, keys).await
    }

    /// Plans what to write on the Node `on`. Its Machine is read once.
    async fn plan(&self, wanted: Wanted<'_>, plan: &mut Plan, on: &Node, id: &str) {
        let opt_outs = wanted.opt_outs;
        let machine = machine_of(on);
        plan.without_machine = opt_outs.without_machine(machine.as_ref());
        plan.before.get_or_insert_with(|| OtherObjects::on(on));
        plan.has_cordon = cordon(on).is_some();
        // This lock has set them before, with the context.
        let is_set = || {
            let set = NodeKeys::opt_outs_of(id, on);
            set.other_objects.machine.is_some()
        };
        let machine = machine
            .filter(|machine| opt_outs.include(machine))
            .filter(|_| self.management.given().is_some() || !is_set());
        if plan.machine.is_none()
            && let Some(machine) = machine
        {
            let seen = self.see_machine_to_write(wanted, &machine, on).await;
            plan.machine = Some((machine, seen));
        }
        let seen = plan.machine.as_ref();
        let record = seen.and_then(|(_, seen)| Some(seen.as_ref().ok()?.record()));
        plan.keys = NodeKeys {
            cordon: wanted.cordon,
            other_objects: OtherObjects {
                machine: record.map(Box::new),
                medik8s_lease: opt_outs.include_medik8s_lease(),
            },
            ..opt_outs.keys(on)
        };
    }

    /// Reads the Machine of the Node `on`. If the Node has a record of another one, that is cleared: there is one record, and
    /// without it nobody would know of the opt-outs there.
    async fn see_machine_to_write(
        &self,
        wanted: Wanted<'_>,
        machine: &MachineRef,
        on: &Node,
    ) -> Result<MachineSeen, WriteError> {
        let node = wanted.lease.node();
        let seen = self.see_machine(node, machine).await?;
        let record = seen.record();
        let earlier = MachineRecord::on(on).filter(|earlier| !earlier.is_of_same(&record));
        let Some(earlier) = earlier else {
            return Ok(seen);
        };
        let ended = KeysOnNode::of(on).and_then(|keys| keys.lock_id);
        let ended = ended.unwrap_or_default();
        let report = |left| (wanted.report)(ProtectionStep::Earlier(left));
        let clearing = self.remove_machine_opt_outs(node, &earlier, &ended, &report);
        match clearing.await {
            true => Ok(seen),
            false => Err(WriteError::EarlierMachine(Box::new(earlier))),
        }
    }

    /// Sets what is wanted on other objects than the Node, which has the records of it unless that was a `failure`. Returns
    /// whether all of it is set.
    async fn protect_others(
        &self,
        wanted: Wanted<'_>,
        plan: &Plan,
        failure: Option<WriteError>,
    ) -> bool {
        let Wanted { lease, report, .. } = wanted;
        let mut is_opted_out = true;
        let mut missing = |step| {
            is_opted_out = false;
            report(step);
        };
        for tool in plan.without_machine.iter().copied() {
            let error = WriteError::NotNamed;
            missing(ProtectionStep::NotTried { tool, error });
        }
        // An earlier lock may have left something there.
        let before = plan.before.clone().unwrap_or_default();
        let mut refused = OtherObjects::default();
        if let Some((of, seen)) = &plan.machine {
            let tool = of.api.tool;
            match (seen, &failure) {
                // Without the record on the Node, nobody would know what to remove.
                (Err(error), _) | (Ok(_), Some(error)) => {
                    let error = error.clone();
                    missing(ProtectionStep::NotTried { tool, error });
                }
                (Ok(seen), None) => {
                    for finding in seen.findings() {
                        report(ProtectionStep::MachineFinding(finding));
                    }
                    match self.opt_out_machine(lease, seen).await {
                        Ok(()) => report(ProtectionStep::MachineOptedOut {
                            of: of.clone(),
                            context: seen.context().to_owned(),
                        }),
                        Err(error) => {
                            let record = seen.record();
                            let earlier = before.machine;
                            let was_there = earlier.is_some_and(|it| it.is_of_same(&record));
                            let is_unset = error.is_certain() && !was_there;
                            refused.machine = is_unset.then(|| Box::new(record));
                            missing(ProtectionStep::NotSet { tool, error });
                        }
                    }
                }
            }
        }
        let (id, uid) = (lock_id(lease), lease.node_uid());
        let of = KeysOfLock {
            node: lease.node(),
            uid: uid.as_deref().unwrap_or_default(),
            lock_id: id.as_deref().unwrap_or_default(),
        };
        if wanted.opt_outs.include_medik8s_lease() {
            let tool = MEDIK8S;
            match failure {
                Some(error) => missing(ProtectionStep::NotTried { tool, error }),
                None => match self.take_medik8s_lease(lease, of).await {
                    Ok(()) => report(ProtectionStep::Medik8sLeaseHeld),
                    Err(error) => {
                        refused.medik8s_lease = error.is_certain() && !before.medik8s_lease;
                        missing(ProtectionStep::NotSet { tool, error });
                    }
                },
            }
        }
        if !refused.is_empty() {
            // If it stays, the end of the lock finds nothing there, and removes it.
            let _ = remove_records(self.locks.requests(), of, &refused).await;
        }
        is_opted_out
    }

    /// Sets the opt-outs of the lock in `lease` on a Machine, of which its Node has a record.
    async fn opt_out_machine(
        &self,
        lease: &NodeLease,
        seen: &MachineSeen,
    ) -> Result<(), WriteError> {
        let id = lock_id(lease);
        let lock = MachineLock {
            lock_id: id.as_deref().unwrap_or_default(),
            owner: lease.holder().map(identity::person).unwrap_or_default(),
        };
        let is_hold = lease.is_hold();
        let MachineSeen { machine, cluster } = seen;
        let is_held = || self.still_shows(lease);
        let set = set_machine_opt_outs(&cluster.requests, machine.clone(), lock, is_held).await;
        match self.noting_silence(&cluster.context, set)? {
            OptOutsSet::Done => Ok(()),
            OptOutsSet::Gone => Err(WriteError::MachineGone),
            OptOutsSet::LockEnded => Err(WriteError::LockEnded { is_hold }),
        }
    }

    /// Takes the medik8s Lease for the lock in `lease`, of which its Node has a record.
    async fn take_medik8s_lease(
        &self,
        lease: &NodeLease,
        of: KeysOfLock<'_>,
    ) -> Result<(), WriteError> {
        let now = || self.locks.server_time().now();
        let is_hold = lease.is_hold();
        let is_held = || self.still_shows(lease);
        match hold_medik8s_lease(self.locks.requests(), of, now, is_held).await? {
            LeaseHeld::Done => Ok(()),
            LeaseHeld::Busy(holder) => Err(WriteError::Medik8sLeaseTaken { holder }),
            LeaseHeld::NoNamespace => Err(WriteError::NoMedik8sNamespace),
            LeaseHeld::LockEnded => Err(WriteError::LockEnded { is_hold }),
        }
    }
}
