//! Kills a helper of this process at once, with its descendants.

use std::collections::HashSet;

use rustix::process::Signal;

use crate::linux::process::{Process, Table};

/// The maximum number of searches for new processes. A stopped process starts none, so two searches are
/// almost always enough.
const MOST_SEARCHES: usize = 16;

/// Kills `child` and all its descendants that still have a parent in the tree. This process must have started
/// `child` and not waited for it yet. Does not wait for their end.
///
/// It is for helpers that share this process's group, because they may need its terminal. Processes of
/// another user (`sudo`) and daemons that have left the tree are not killed.
pub fn kill_tree(child: u32) {
    let Ok(child) = i32::try_from(child) else {
        return;
    };
    let mut tree: Vec<Process> = Vec::new();
    let mut stopped = HashSet::new();
    for _ in 0..MOST_SEARCHES {
        // If the processes can't be listed again, the known ones are killed.
        let Ok(table) = Table::read() else { break };
        let root = table.get(child).copied();
        tree = root
            .into_iter()
            .chain(table.below(child, |_| true))
            .collect();
        let new: Vec<&Process> = { tree.iter() }
            .filter(|process| stopped.insert(process.id))
            .collect();
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
        let mut child = Command::new("/bin/sh")
            .args([
                "-c",
                &format!("setsid sh -c \"{busy}\" & sh -c \"{busy}\" & wait"),
            ])
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
        // All processes have stdout open, so its end shows that all have ended.
        assert_eq!(stdout.read_to_end(&mut Vec::new()).expect("an end"), 0);
        assert_eq!(child.wait().expect("it is ours").code(), None);
    }
}
