//! What other tools do to a node, and the keys on its Node that tell them to leave it alone.
//!
//! [`findings`] reads what they do. [`ProtectionWriter`] sets what a lock sets besides its Lease, and removes it at the end: on
//! the Node with [`set_keys`] and [`remove_keys`], on the Machine of the Node, and as its medik8s Lease. [`NodeKeys`] is what
//! there is on a Node.

#![warn(missing_docs)]

mod apply;
mod findings;
mod held_label;
mod keys_of_nodes;
mod keys_on_node;
mod left_behind;
mod machine;
mod machine_keys;
mod machine_opt_outs;
mod machine_record;
mod managed_fields;
mod management;
mod medik8s_lease;
mod node_keys;
mod opt_outs;
mod other_locks;
mod other_objects;
mod protect;
mod protection_writer;
mod unprotect;
mod update_node;
mod write_error;
mod writes;

pub use apply::{
    Conflict, KeysCleared, KeysOfLock, KeysRemoved, KeysSet, clear_keys, has_keys, remove_keys,
    set_keys,
};
pub use findings::{Activity, Finding, findings, medik8s_finding, medik8s_lease_path};
pub use keys_of_nodes::{KeysOfNodes, LocksByNode};
pub use keys_on_node::{KeysOnNode, current_lock_id};
pub use left_behind::LeftBehind;
pub use machine::{MachineApi, MachineRef};
pub use machine_opt_outs::{MachineSeen, OptedOutMachine};
pub use machine_record::MachineRecord;
pub use management::{ConnectFailure, ManagementCluster, ManagementClusters};
pub use medik8s_lease::{
    LeaseHeld, LeaseReleased, hold_medik8s_lease, lock_of_medik8s_lease, release_medik8s_lease,
};
pub use node_keys::{FIELD_MANAGER, HELD, NodeKeys};
pub use opt_outs::{MEDIK8S, OptOuts, UnknownTool, machine_of, tools};
pub use other_locks::{KuredLock, kured_locks};
pub use other_objects::OtherObjects;
pub use protect::{ProtectionResult, ProtectionStep};
pub use protection_writer::{ProtectionWriter, may_have_keys};
pub use update_node::NodeUpdate;
pub use write_error::WriteError;
