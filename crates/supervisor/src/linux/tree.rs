//! Ends a helper of this process at once, with its descendants.

use std::collections::HashSet;

use rustix::process::Signal;

use crate::linux::process::{Process, Table};

/// How often new processes are searched. A stopped process starts none, so two searches are nearly always
/// enough.
const MOST_LOOKS: usize = 16;

/// Kills `child`, a process that this one started and has not waited for, and all its descendants that still
/// have a parent in the tree. It doesn't wait for their end.
///
/// It is for helpers that share this process's group, because they may need its terminal. Processes of another
/// user (`sudo`) and daemons that have left the tree are not touched.
pub fn kill_tree(child: u32) {
    let Ok(child) = i32::try_from(child) else {
        return;
    };
    let mut stopped = HashSet::new();
    let mut tree = Vec::new();
    for _ in 0..MOST_LOOKS {
        let Ok(table) = Table::read() else { break };
        tree = table.get(child).copied().into_iter().collect();
        tree.extend(table.below(child, |_| true));
        let is_new = |process: &&Process| stopped.insert(process.id);
        let new: Vec<&Process> = tree.iter().filter(is_new).collect();
        if new.is_empty() {
            break;
        }
        for process in new {
            process.send(&[Signal::STOP]);
        }
    }
    for process in &tree {
        process.send(&[Signal::KILL]);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn all_processes_are_killed_while_new_ones_start() {
        let busy = "trap '' TERM INT; echo busy; while :; do sleep 0 & wait; done";
        let script = format!("setsid sh -c \"{busy}\" & sh -c \"{busy}\" & wait");
        let mut child = Command::new("/bin/sh")
            .args(["-c", &script])
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        for _ in 0..2 {
            let mut line = String::new();
            stdout.read_line(&mut line).expect("text");
            assert_eq!(line, "busy\n");
        }
        kill_tree(child.id());
        // All of them have it open.
        assert_eq!(stdout.read_to_end(&mut Vec::new()).expect("an end"), 0);
        assert_eq!(child.wait().expect("it is ours").code(), None);
    }
}
