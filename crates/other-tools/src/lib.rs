//! What other tools do to a node, and the keys on its Node that tell them to leave it alone.
//!
//! [`findings`] reads what they do. [`set_keys`] and [`remove_keys`] write all that a lock writes on its Node: one server-side apply each.
//! [`set_machine_opt_outs`] and [`remove_machine_opt_outs`] do the same for the Machine of the Node, [`hold_medik8s_lease`] and
//! [`release_medik8s_lease`] for its medik8s Lease.

#![warn(missing_docs)]

mod apply;
mod findings;
mod held_label;
mod keys_on_node;
mod machine;
mod machine_keys;
mod machine_record;
mod managed_fields;
mod medik8s_lease;
mod node_keys;
mod opt_outs;
mod other_locks;
mod other_objects;
mod writes;

pub use apply::{
    Conflict, KeysCleared, KeysOfLock, KeysRemoved, KeysSet, clear_keys, has_keys, remove_keys,
    remove_records, set_keys,
};
pub use findings::{Activity, Finding, findings, medik8s_finding, medik8s_lease_path};
pub use keys_on_node::{KeysOnNode, current_lock_id};
pub use machine::{Machine, MachineApi, MachineLock, MachineRef};
pub use machine_keys::{
    OptOutsRemoved, OptOutsSet, machines_with_opt_outs, read_machine, remove_machine_opt_outs,
    set_machine_opt_outs,
};
pub use machine_record::MachineRecord;
pub use medik8s_lease::{
    LeaseHeld, LeaseReleased, hold_medik8s_lease, lock_of_medik8s_lease, release_medik8s_lease,
};
pub use node_keys::{FIELD_MANAGER, HELD, NodeKeys};
pub use opt_outs::{MEDIK8S, OptOuts, UnknownTool, machine_of, tools};
pub use other_locks::{KuredLock, kured_locks};
pub use other_objects::OtherObjects;
