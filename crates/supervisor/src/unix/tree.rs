//! Kills a helper of this process at once, with its descendants.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::tree::stop_and_kill;
use crate::unix::ps::{Process, add_descendants, processes};

/// How long to list the processes. This process does nothing else during this time.
const TIMEOUT: Duration = Duration::from_millis(200);

/// Kills `child`, and its descendants that `ps` shows within 0.2 s. This process must have started `child`
/// and not waited for it yet. Does not wait for their end.
///
/// It is for helpers that share this process's group, because they may need its terminal. Processes of
/// another user (`sudo`) and daemons that have left the tree are not killed.
pub fn kill_tree(child: u32) {
    kill_tree_within(TIMEOUT, child);
}

fn kill_tree_within(timeout: Duration, child: u32) {
    let Some(child) = i32::try_from(child).ok().and_then(Pid::from_raw) else {
        return;
    };
    let begun = Instant::now();
    // The child may have ended.
    let _result = kill_process(child, Signal::STOP);
    let list = || {
        let processes = processes(timeout.saturating_sub(begun.elapsed()))?;
        let is_child = |process: &&Process| process.id.pid == child.as_raw_pid();
        let mut tree = processes.iter().filter(is_child).cloned().collect();
        add_descendants(&mut tree, &processes);
        Ok(tree)
    };
    let send = |process: &Process, signal| {
        // The process may have ended, or belong to another user.
        let _sent = process.send(&[signal]);
    };
    stop_and_kill(list, |process| process.id.clone(), send);
    // Kills the child even if it was not listed.
    let _result = kill_process(child, Signal::KILL);
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::tree::tests::ends_while_new_ones_start;

    #[test]
    fn all_processes_are_killed_while_new_ones_start() {
        ends_while_new_ones_start(|child| kill_tree_within(Duration::from_secs(30), child));
    }

    #[test]
    fn it_is_killed_also_if_no_process_is_listed() {
        let mut child = Command::new("/bin/sleep")
            .arg("60")
            .spawn()
            .expect("a process");
        kill_tree_within(Duration::ZERO, child.id());
        assert_eq!(child.wait().expect("it is ours").code(), None);
    }
}
