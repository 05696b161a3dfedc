//! `cargo xtask try`: a temporary cluster in memory, and a first session with the plugin.

use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};

use anyhow::{Context, Result, bail, ensure};
use sandbox::Node;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

use crate::cargo::build_plugin;
use crate::output::print;
use crate::sandbox_cluster::{SandboxCluster, kubectl, path_with, tools};
use crate::try_shell;

/// Try the plugin on a temporary cluster in memory
///
/// Builds the plugin, starts an API server in memory with four nodes, and shows two operators who
/// want the same node. All commands really run, and their output is real. This needs kubectl: if it
/// is not in PATH, it is built.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Start a shell on the cluster instead: with completion, and a prompt that names it
    #[arg(long)]
    shell: bool,
}

/// Tells the user what will happen, because the build takes some time.
const PLAN: &str = "\
Builds the plugin, starts an API server in memory with 4 nodes, and shows what
two operators see who want the same node. Your own clusters are not touched.";

const PLAN_OF_SHELL: &str = "\
Builds the plugin, starts an API server in memory with 4 nodes, and opens a
shell on it. Your own clusters are not touched.";

/// A user's goal and the command for it.
struct Step {
    says: &'static str,
    who: &'static str,
    command: &'static str,
    act: Act,
}

/// How a command ends.
enum Act {
    /// It ends with this exit code, and the next step follows.
    Ends(i32),
    /// It waits until the next command releases the lock. Then this is printed.
    Waits { then: &'static str },
}

const STEPS: &[Step] = &[
    Step {
        says: "There are four nodes. Alice wants to reboot worker-1 and acquires its lock.",
        who: "alice",
        command: "kubectl maint acquire worker-1 -m 'new kernel'",
        act: Act::Ends(0),
    },
    Step {
        says: "Bob wants the lock too. The error says who holds it, why and until when. The exit code is 3.",
        who: "bob",
        command: "kubectl maint acquire worker-1 -m 'disk check'",
        act: Act::Ends(3),
    },
    Step {
        says: "Multiple nodes are all-or-nothing: worker-1 is refused, so worker-2 is not locked either.",
        who: "bob",
        command: "kubectl maint acquire worker-1 worker-2 -m 'disk check'",
        act: Act::Ends(3),
    },
    Step {
        says: "Carol, an administrator, puts a broken node on hold. A hold does not expire.",
        who: "carol",
        command: "kubectl maint hold worker-3 -m 'bad DIMM, parts on the way' --expect-until 2d",
        act: Act::Ends(0),
    },
    Step {
        says: "Everybody can see all locks.",
        who: "bob",
        command: "kubectl maint status",
        act: Act::Ends(0),
    },
    Step {
        says: "Alice needs more time and extends her lock.",
        who: "alice",
        command: "kubectl maint renew worker-1 --duration 1h",
        act: Act::Ends(0),
    },
    Step {
        says: "Bob waits for worker-1 in another terminal.",
        who: "bob",
        command: "kubectl maint acquire worker-1 -m 'disk check' --wait",
        act: Act::Waits {
            then: "Bob's command acquires the lock at once.",
        },
    },
    Step {
        says: "Alice is done and releases the lock.",
        who: "alice",
        command: "kubectl maint release worker-1",
        act: Act::Ends(0),
    },
    Step {
        says: "A command can run under a lock. The lock is renewed while it runs, and released at the end.",
        who: "alice",
        command: "kubectl maint with worker-2 -m 'firmware' -- sh -c 'echo here I would run: ssh $MAINT_NODE'",
        act: Act::Ends(0),
    },
    Step {
        says: "Each lock is an ordinary Lease, so kubectl can show it too.",
        who: "bob",
        command: "kubectl get leases --namespace kube-node-maintenance",
        act: Act::Ends(0),
    },
];

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        print(if self.shell { PLAN_OF_SHELL } else { PLAN });
        build_plugin()?;
        let tools = tools(&kubectl()?);
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?
            .block_on(async {
                let cluster = SandboxCluster::start(Node::small_cluster()).await?;
                if self.shell {
                    try_shell::run(&cluster, tools).await
                } else {
                    show(&cluster, &path_with(&tools)?).await
                }
            })
    }
}

async fn show(cluster: &SandboxCluster, path: &OsString) -> Result<()> {
    let mut waiting: Option<(Waiter, &str)> = None;
    for step in STEPS {
        print(comment(step.says));
        print(format_args!("{} $ {}", step.who, step.command));
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("exec {}", step.command))
            .env("KUBECONFIG", cluster.kubeconfig())
            .env("KUBECTL_MAINT_HOLDER", step.who)
            .env("PATH", path);
        let code = match step.act {
            Act::Ends(code) => code,
            Act::Waits { then } => {
                waiting = Some((Waiter::start(command).await?, then));
                continue;
            }
        };
        let status = command.status().await.context("failed to run sh")?;
        ensure!(
            status.code() == Some(code),
            "`{}` ended with {status}, not with exit code {code}",
            step.command
        );
        if code != 0 {
            print(format_args!("(exit code {code})"));
        }
        if let Some((waiter, then)) = waiting.take() {
            print(comment(then));
            let status = waiter.ends().await?;
            ensure!(status.success(), "what waited ended with {status}");
        }
    }
    print("\nThe cluster is removed. To try it yourself: cargo xtask try --shell");
    Ok(())
}

/// `text` as comment lines of at most 80 columns, after an empty line.
fn comment(text: &str) -> String {
    let mut lines = "\n#".to_owned();
    let mut length = 1;
    for word in text.split(' ') {
        if length + 1 + word.len() > 80 {
            lines.push_str("\n#");
            length = 1;
        }
        lines = lines + " " + word;
        length += 1 + word.len();
    }
    lines
}

/// A command that waits for a lock.
struct Waiter {
    child: Child,
    stderr: Lines<BufReader<ChildStderr>>,
}

impl Waiter {
    /// Starts `command`, and prints its output until it waits for the lock.
    async fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("failed to run sh")?;
        let stderr = child.stderr.take().context("it has a stderr")?;
        let mut stderr = BufReader::new(stderr).lines();
        while let Some(line) = stderr.next_line().await? {
            print(&line);
            if line.starts_with("waiting") {
                return Ok(Self { child, stderr });
            }
        }
        bail!("it does not wait")
    }

    /// Waits for its end, and prints the rest of its output.
    async fn ends(mut self) -> Result<ExitStatus> {
        let output = self.child.wait_with_output().await?;
        print(String::from_utf8_lossy(&output.stdout).trim_end());
        while let Some(line) = self.stderr.next_line().await? {
            print(&line);
        }
        Ok(output.status)
    }
}
