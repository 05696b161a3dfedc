//! What other tools do to a node, and the keys on its Node that tell them to leave it alone.
//!
//! [`findings`] reads what they do. [`ProtectionWriter`] sets the keys of a lock on its Node with [`set_keys`], and removes them
//! at the end with [`remove_keys`]. [`NodeKeys`] is what there is on a Node.

#![warn(missing_docs)]

mod apply;
mod findings;
mod held_label;
mod keys_of_nodes;
mod keys_on_node;
mod managed_fields;
mod node_keys;
mod opt_outs;
mod other_locks;
mod protect;
mod protection_writer;
mod unprotect;
mod update_node;
mod write_error;
mod writes;

pub use apply::{
    Conflict, KeysOfLock, KeysRemoved, KeysSet, clear_keys, has_keys, remove_keys, set_keys,
};
pub use findings::{Activity, Finding, findings, medik8s_finding, medik8s_lease_path};
pub use keys_of_nodes::{KeysOfNodes, LocksByNode};
pub use keys_on_node::{KeysOnNode, current_lock_id};
pub use node_keys::{FIELD_MANAGER, HELD, NodeKeys};
pub use opt_outs::{OptOuts, UnknownTool, tools};
pub use other_locks::{KuredLock, kured_locks};
pub use protect::Protected;
pub use protection_writer::{ProtectionWriter, may_have_keys};
pub use update_node::NodeUpdate;
pub use write_error::WriteError;
