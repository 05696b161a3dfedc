//! Kills a helper of this process at once, with its descendants.

use crate::linux::process::{Process, Table};
use crate::tree::stop_and_kill;

/// Kills `child` and all its descendants that still have a parent in the tree. This process must have started
/// `child` and not waited for it yet. Does not wait for their end.
///
/// It is for helpers that share this process's group, because they may need its terminal. Processes of
/// another user (`sudo`) and daemons that have left the tree are not killed.
pub fn kill_tree(child: u32) {
    let Ok(child) = i32::try_from(child) else {
        return;
    };
    let list = || {
        let table = Table::read()?;
        let root = table.get(child).copied();
        let below = table.below(child, |_| true);
        Ok(root.into_iter().chain(below).collect())
    };
    let send = |process: &Process, signal| {
        // The process may have ended, or belong to another user.
        let _sent = process.send(&[signal]);
    };
    stop_and_kill(list, |process| process.id, send);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::ends_while_new_ones_start;

    #[test]
    fn all_processes_are_killed_while_new_ones_start() {
        ends_while_new_ones_start(kill_tree);
    }
}
