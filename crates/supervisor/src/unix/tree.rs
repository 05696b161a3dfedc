//! Ends a helper of this process at once, with its descendants.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::unix::ps::{Process, add_descendants, processes};

/// How long the processes are listed: meanwhile this process does nothing else.
const TIMEOUT: Duration = Duration::from_millis(200);

/// How often new processes are searched. A stopped process starts none, so two searches are nearly always enough.
const MOST_LOOKS: usize = 16;

/// Kills `child`, a process that this one started and has not waited for, and its descendants as far as `ps` shows them
/// within 0.2 s. It doesn't wait for their end.
///
/// It is for helpers that share this process's group, because they may need its terminal. Processes of another
/// user (`sudo`) and daemons that have left the tree are not touched.
pub fn kill_tree(child: u32) {
    kill_tree_within(TIMEOUT, child);
}

fn kill_tree_within(timeout: Duration, child: u32) {
    let Some(child) = i32::try_from(child).ok().and_then(Pid::from_raw) else {
        return;
    };
    let begun = Instant::now();
    // It may have ended.
    let _result = kill_process(child, Signal::STOP);
    let mut stopped = HashSet::new();
    let mut tree = Vec::new();
    for _ in 0..MOST_LOOKS {
        let Ok(processes) = processes(timeout.saturating_sub(begun.elapsed())) else {
            break;
        };
        let is_child = |process: &&Process| process.id.pid == child.as_raw_pid();
        tree = processes.iter().filter(is_child).cloned().collect();
        add_descendants(&mut tree, &processes);
        let is_new = |process: &&Process| stopped.insert(process.id.clone());
        let new: Vec<&Process> = tree.iter().filter(is_new).collect();
        if new.is_empty() {
            break;
        }
        for process in new {
            process.send(&[Signal::STOP]);
        }
    }
    let _result = kill_process(child, Signal::KILL);
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
    fn nothing_of_it_is_left_also_while_it_starts_more() {
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
        kill_tree_within(Duration::from_secs(30), child.id());
        // All of them have it open.
        assert_eq!(stdout.read_to_end(&mut Vec::new()).expect("an end"), 0);
        assert_eq!(child.wait().expect("it is ours").code(), None);
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
