//! The predicted result of a write, for dry runs that send nothing.

use super::change::Task;
use super::patch::keys;
use crate::lease::NodeLease;
use crate::notes::Notes;
use crate::protocol::{Version, Write};
use crate::repository::Repository;

/// The Lease of `repository` after `write`, based on `on`.
pub(super) fn predicted(
    write: &Write,
    on: Option<&NodeLease>,
    task: &Task,
    repository: &Repository,
) -> NodeLease {
    let mut lease = on.cloned().unwrap_or_else(|| NodeLease {
        node: task.node.clone(),
        uid: String::new(),
        version: Version(0),
        holder: None,
        acquired: None,
        renewed: None,
        duration: 0,
        transitions: 0,
        elected: false,
        deleting: false,
        admin: false,
        foreign: false,
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
            let holder = task.names.name(holder);
            lease.holder = Some(holder.to_owned());
            lease.admin = repository.is_admin(holder);
            lease.acquired = Some(at);
            lease.renewed = Some(at);
            lease.duration = duration;
            lease.transitions = transitions;
            lease.notes.reason.clone_from(&task.extras.reason);
            lease.notes.hold_until.clone_from(&task.extras.hold_until);
            lease.notes.released_by = None;
            lease.notes.user.clone_from(&task.extras.user);
            lease.notes.purpose.clone_from(&task.extras.purpose);
            lease.notes.keys = keys(on, &task.extras);
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
            if task.extras.keys.is_some() {
                lease.notes.keys = keys(on, &task.extras);
            }
        }
        Write::Release { renewed, .. } => {
            lease.notes.last_holder = lease.holder.take();
            lease.notes.released_by.clone_from(&task.extras.released_by);
            lease.notes.reason.clone_from(&task.extras.reason);
            lease.notes.hold_until = None;
            if !lease.is_of_election() {
                lease.notes.purpose = None;
            }
            lease.notes.keys = None;
            lease.notes.nonce = None;
            lease.renewed = Some(renewed);
            lease.duration = 1;
        }
    }
    lease
}
