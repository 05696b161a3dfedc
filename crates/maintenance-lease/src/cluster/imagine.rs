//! What a write would leave behind, for dry runs that send none.

use super::change::Task;
use crate::lease::NodeLease;
use crate::notes::Notes;
use crate::protocol::{Version, Write};

/// The Lease as `write` would make it of `on`.
pub(super) fn imagined(write: &Write, on: Option<&NodeLease>, task: &Task<'_>) -> NodeLease {
    let mut lease = on.cloned().unwrap_or_else(|| NodeLease {
        node: task.node.to_owned(),
        uid: String::new(),
        version: Version(0),
        holder: None,
        acquired: None,
        renewed: None,
        duration: 0,
        transitions: 0,
        elected: false,
        deleting: false,
        owners: None,
        notes: Notes::default(),
    });
    match *write {
        Write::Acquire {
            holder,
            at,
            duration,
            transitions,
            ..
        } => {
            lease.holder = Some(task.names.name(holder).to_owned());
            lease.acquired = Some(at);
            lease.renewed = Some(at);
            lease.duration = duration;
            lease.transitions = transitions;
            lease.notes.reason.clone_from(&task.extras.reason);
            lease.notes.hold_until.clone_from(&task.extras.hold_until);
        }
        Write::Renew { at, duration, .. } => {
            lease.renewed = Some(at);
            lease.duration = duration;
            if task.extras.reason.is_some() {
                lease.notes.reason.clone_from(&task.extras.reason);
            }
            if task.extras.hold {
                lease.notes.hold_until.clone_from(&task.extras.hold_until);
            }
        }
        Write::Release { renewed, .. } => {
            lease.notes.last_holder = lease.holder.take();
            lease.notes.reason.clone_from(&task.extras.reason);
            lease.notes.hold_until = None;
            lease.notes.nonce = None;
            lease.renewed = Some(renewed);
            lease.duration = 1;
        }
    }
    lease
}
