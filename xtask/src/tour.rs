//! `cargo xtask try`: a throw-away cluster in memory, and a first session with the plugin.

use std::env;
use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use sandbox::Node;
use tokio::process::Command;

use crate::cargo::build_plugin;
use crate::practice::{Practice, kubectl, path_with, tools};
use crate::say::say;

/// Try the plugin on a throw-away cluster in memory
///
/// Builds the plugin, starts an API server in memory with four nodes, and shows two operators who
/// want the same node. Every command is really run, and every line below it is its output. Needs
/// kubectl: the one in PATH, else one is built.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Start a shell with `kubectl maint` ready, instead of the tour
    #[arg(long)]
    shell: bool,
}

/// Somebody at a terminal, what they want, and the command for it.
struct Step {
    says: &'static str,
    who: &'static str,
    command: &'static str,
    code: i32,
}

const TOUR: &[Step] = &[
    Step {
        says: "Four nodes. Alice wants to reboot worker-1, and takes its lock.",
        who: "alice@bastion",
        command: "kubectl maint acquire worker-1 -m 'new kernel'",
        code: 0,
    },
    Step {
        says: "Bob wants it too. He is told who has it, why and until when; his script gets exit code 3.",
        who: "bob@laptop",
        command: "kubectl maint acquire worker-1 -m 'disk check'",
        code: 3,
    },
    Step {
        says: "Several nodes are taken all or none: he gets neither, and nothing is left behind.",
        who: "bob@laptop",
        command: "kubectl maint acquire worker-1 worker-2 -m 'disk check'",
        code: 3,
    },
    Step {
        says: "Meanwhile an administrator puts a broken node on hold. A hold has no end of its own.",
        who: "carol@bastion",
        command: "kubectl maint hold worker-3 -m 'bad DIMM, parts on the way' --until 2d",
        code: 0,
    },
    Step {
        says: "Everybody can see it all.",
        who: "bob@laptop",
        command: "kubectl maint status",
        code: 0,
    },
    Step {
        says: "It takes longer than thought: alice extends.",
        who: "alice@bastion",
        command: "kubectl maint renew worker-1 --duration 1h",
        code: 0,
    },
    Step {
        says: "She is done, and gives it back.",
        who: "alice@bastion",
        command: "kubectl maint release worker-1",
        code: 0,
    },
    Step {
        says: "Now bob gets it. A script asks for the token of this very acquisition.",
        who: "bob@laptop",
        command: "kubectl maint acquire worker-1 -m 'disk check' -o token",
        code: 0,
    },
    Step {
        says: "The lock is an ordinary Lease, which plain kubectl shows too.",
        who: "bob@laptop",
        command: "kubectl get leases --namespace kube-node-maintenance",
        code: 0,
    },
];

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        build_plugin()?;
        let kubectl = kubectl()?;
        let path = path_with(&tools(&kubectl))?;
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?
            .block_on(async {
                let practice = Practice::start([
                    Node::named("control-plane-1"),
                    Node::named("worker-1").label("pool", "general"),
                    Node::named("worker-2").label("pool", "general"),
                    Node::named("worker-3").label("pool", "gpu").cordoned(),
                ])
                .await?;
                if self.shell {
                    shell(&practice, path).await
                } else {
                    tour(&practice, &path).await
                }
            })
    }
}

async fn tour(practice: &Practice, path: &OsString) -> Result<()> {
    for step in TOUR {
        say(format_args!("\n# {}", step.says));
        say(format_args!("{} $ {}", person(step.who), step.command));
        let status = Command::new("sh")
            .args(["-c", step.command])
            .env("KUBECONFIG", practice.kubeconfig())
            .env("KUBECTL_MAINT_HOLDER", step.who)
            .env("PATH", path)
            .status()
            .await
            .context("failed to run sh")?;
        ensure!(
            status.code() == Some(step.code),
            "`{}` ended with {status}, not with exit code {}",
            step.command,
            step.code
        );
        if step.code != 0 {
            say(format_args!("(exit code {})", step.code));
        }
    }
    say("\nThat cluster is gone now. For one of your own to play with: cargo xtask try --shell");
    Ok(())
}

async fn shell(practice: &Practice, path: OsString) -> Result<()> {
    let shell = env::var_os("SHELL").unwrap_or_else(|| "sh".into());
    say("`kubectl maint` is ready, on a cluster in memory with four nodes; `exit` ends it.");
    say("Start with: kubectl maint status");
    let status = Command::new(&shell)
        .env("KUBECONFIG", practice.kubeconfig())
        .env("PATH", path)
        .status()
        .await
        .with_context(|| format!("failed to run {}", Path::new(&shell).display()))?;
    say(format_args!("the cluster is gone ({status})"));
    Ok(())
}

/// The person behind a holder.
fn person(holder: &str) -> &str {
    holder.split('@').next().unwrap_or(holder)
}
