//! Kills processes that may start others at the same time.

use std::collections::HashSet;
use std::hash::Hash;
use std::io;

use rustix::process::Signal;

/// The maximum number of searches for new processes. A stopped process starts none, so two searches are
/// almost always enough.
const MOST_LOOKS: usize = 16;

/// Stops the processes that `list` returns until it returns no new ones, then kills them. Processes with the
/// same `id` are the same. If they can't be listed again, the known processes are killed.
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
    use std::io::{self, BufRead as _, BufReader, Read as _};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    /// In a shell, runs the words after it as the leader of a new session, like setsid(1), which macOS does
    /// not have. It runs this program, which `$TESTS` must name, with the test below. The test harness prints
    /// on stdout, so stderr replaces it.
    pub(crate) const SETSID: &str =
        r#"2>&1 >/dev/null "$TESTS" --ignored --exact tree::tests::setsid --"#;

    #[test]
    #[ignore = "a helper of other tests"]
    fn setsid() {
        let words: Vec<_> = std::env::args_os()
            .skip_while(|word| word != "--")
            .collect();
        let [_, program, arguments @ ..] = words.as_slice() else {
            return;
        };
        rustix::process::setsid().expect("a new session");
        let error = Command::new(program)
            .args(arguments)
            .stdout(io::stderr())
            .exec();
        panic!("{error}");
    }

    /// Checks that no process is left of a tree that `kill` ends while the tree starts more processes.
    pub(crate) fn ends_while_new_ones_start(kill: impl FnOnce(u32)) {
        let busy = "trap '' TERM INT; echo busy; while :; do sleep 0 & wait; done";
        let script = format!("{SETSID} sh -c \"{busy}\" & sh -c \"{busy}\" & wait");
        let mut child = Command::new("/bin/sh")
            .args(["-c", &script])
            .env("TESTS", std::env::current_exe().expect("this program"))
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
        // All processes have stdout open, so its end shows that all have ended.
        assert_eq!(stdout.read_to_end(&mut Vec::new()).expect("an end"), 0);
        assert_eq!(child.wait().expect("it is ours").code(), None);
    }
}
