//! Kills processes that may start others meanwhile.

use std::collections::HashSet;
use std::hash::Hash;
use std::io;

use rustix::process::Signal;

/// How often new processes are searched. A stopped process starts none, so two searches are nearly always enough.
const MOST_LOOKS: usize = 16;

/// Stops the processes that `list` returns until it returns no new ones, then kills them. Those with the same `id` are the
/// same. If they can't be listed again, those that are known are killed.
pub(crate) fn stop_and_kill<P, I: Eq + Hash>(
    mut list: impl FnMut() -> io::Result<Vec<P>>,
    id: impl Fn(&P) -> I,
    send: impl Fn(&P, Signal),
) {
    let mut stopped = HashSet::new();
    let mut tree = Vec::new();
    for _ in 0..MOST_LOOKS {
        let Ok(listed) = list() else { break };
        tree = listed;
        let new: Vec<&P> = { tree.iter() }
            .filter(|process| stopped.insert(id(process)))
            .collect();
        if new.is_empty() {
            break;
        }
        for process in new {
            send(process, Signal::STOP);
        }
    }
    for process in &tree {
        send(process, Signal::KILL);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::process::{Command, Stdio};

    /// Nothing is left of a tree that `kill` ends while it starts more processes.
    pub(crate) fn ends_while_new_ones_start(kill: impl FnOnce(u32)) {
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
        kill(child.id());
        // All of them have it open.
        assert_eq!(stdout.read_to_end(&mut Vec::new()).expect("an end"), 0);
        assert_eq!(child.wait().expect("it is ours").code(), None);
    }
}
