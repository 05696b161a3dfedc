//! A process that cleans up after the control plane, even if this process is killed.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;

use anyhow::{Context, Result, bail};

/// Reads orders line by line, and carries them out at the end of the file, when no process can write to it any more.
///
/// A process id may have been reused. Where `/proc` exists, only processes whose command line contains the control
/// plane's directory are killed. The command line of every child does.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
directory=$1
pids=' '
logs=
while IFS=' ' read -r verb rest; do
    case $verb in
        add) pids="$pids$rest " ;;
        del) case $pids in *" $rest "*) pids="${pids%% $rest *} ${pids#* $rest }" ;; esac ;;
        keep) logs=${logs:-$rest} ;;
    esac
done
for pid in $pids; do
    if [ ! -d /proc/self ] || grep -qsF -e "$directory" "/proc/$pid/cmdline"; then
        kill -KILL "$pid"
    fi
done
if [ -n "$logs" ]; then
    rm -rf -- "$logs" && mkdir -p -- "$logs" && cp -R -- "$directory/logs/." "$logs/"
fi
while ! rm -rf -- "$directory" && [ -d "$directory" ]; do sleep 0.05; done
"#;

/// An `sh` process. As soon as the process that started it has ended for any reason, it kills the processes of the
/// control plane and removes its directory.
#[derive(Debug)]
pub(crate) struct Janitor {
    child: Child,
    orders: Mutex<Option<ChildStdin>>,
}

impl Janitor {
    pub(crate) fn start(directory: &Path) -> Result<Self> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "control-plane-janitor"])
            .arg(directory)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("failed to start /bin/sh")?;
        let orders = Mutex::new(child.stdin.take());
        Ok(Self { child, orders })
    }

    /// A command that starts `program`. The child itself writes its process id to the janitor before it executes the
    /// program, so the janitor knows every child. Output is appended to `log`.
    pub(crate) fn command(&self, program: &Path, log: &Path) -> Result<Command> {
        let orders = match &*self.orders.lock().expect("no panic under this lock") {
            Some(orders) => {
                use std::os::fd::AsFd;
                orders.as_fd().try_clone_to_owned()?
            }
            None => bail!("the control plane has ended"),
        };
        let mut command = Command::new("/bin/sh");
        command
            .args([
                "-c",
                r#"echo "add $$"; log=$1; shift; exec "$@" >>"$log" 2>&1"#,
                "sh",
            ])
            .args([log, program])
            .env_clear()
            .stdin(Stdio::null())
            .stdout(orders)
            .stderr(Stdio::null())
            .process_group(0);
        Ok(command)
    }

    /// Removes a child that has been waited for, because its process id may be reused.
    pub(crate) fn forget(&self, pid: u32) {
        self.order(&format!("del {pid}\n"));
    }

    /// Copies the logs to `directory` before they are removed. Only the first such order counts.
    pub(crate) fn keep_logs(&self, directory: &Path) {
        self.order(&format!("keep {}\n", directory.display()));
    }

    fn order(&self, line: &str) {
        if let Some(orders) = &mut *self.orders.lock().expect("no panic under this lock") {
            // This fails only if the janitor was killed.
            let _gone = orders.write_all(line.as_bytes());
        }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        drop(self.orders.lock().map(|mut orders| orders.take()));
        let _status = self.child.wait();
    }
}
