//! The cost of one run of a command.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use control_plane::{Binary, ControlPlane, target_dir};
use wait4::Wait4 as _;

/// The namespace of the Leases.
pub(super) const NAMESPACE: &str = "kube-node-maintenance";

/// The plugin and kubectl, with one API server.
pub(super) struct Tools {
    plugin: PathBuf,
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    home: PathBuf,
    /// The directories of the plugin, which kubectl finds there, and of the system's programs.
    path: String,
}

/// The resources that a command used, with all of its children.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    pub(super) wall: Duration,
    pub(super) cpu: Duration,
    /// The largest resident set of one process, in KiB.
    pub(super) memory: u64,
}

impl Tools {
    /// `plugin` is the path of the plugin.
    pub(super) fn new(plane: &ControlPlane, plugin: PathBuf) -> Result<Self> {
        let directory = plugin.parent().context("the plugin has no directory")?;
        Ok(Self {
            path: format!("{}:/usr/bin:/bin", directory.display()),
            plugin,
            kubectl: Binary::Kubectl.locate()?,
            kubeconfig: plane.admin_kubeconfig().to_owned(),
            home: plane.directory().to_owned(),
        })
    }

    pub(super) fn plugin(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.plugin);
        command.args(arguments);
        command
    }

    pub(super) fn kubectl(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.kubectl);
        command.args(arguments);
        command
    }

    /// A shell script; `$0` is kubectl.
    pub(super) fn shell(&self, script: &str) -> Command {
        let mut command = self.command("/bin/sh");
        command.args(["-c", script]).arg(&self.kubectl);
        command
    }

    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &self.home)
            .env("PATH", &self.path)
            .env("KUBECTL_MAINT_HOLDER", "bench@here");
        command
    }
}

/// Run a command once and print its cost
///
/// Linux counts the memory that a process had before it executed another program. A large parent process would
/// therefore show in every result. This program is small.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Command to run, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

impl Arguments {
    #[expect(clippy::print_stdout, reason = "the parent reads it")]
    pub(crate) fn run(self) -> Result<()> {
        let (program, arguments) = self.command.split_first().context("no command")?;
        let begun = Instant::now();
        let mut child = Command::new(program)
            .args(arguments)
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| program.to_string_lossy().into_owned())?;
        let end = child.wait4()?;
        let wall = begun.elapsed();
        ensure!(end.status.success(), "it ended with {}", end.status);
        let cpu = end.rusage.utime + end.rusage.stime;
        println!(
            "{} {} {}",
            wall.as_micros(),
            cpu.as_micros(),
            end.rusage.maxrss / 1024
        );
        Ok(())
    }
}

/// The release build of this program. It is small, so it adds little to a result.
pub(super) fn optimized_xtask() -> PathBuf {
    target_dir().join("release/xtask")
}

/// Runs `command`, which must succeed.
pub(super) fn cost(command: &Command) -> Result<Cost> {
    let mut measured = Command::new(optimized_xtask());
    measured
        .arg("measure")
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let output = measured.output()?;
    ensure!(output.status.success(), "{command:?} failed");
    let figures: Vec<u64> = String::from_utf8(output.stdout)?
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let [wall, cpu, memory] = figures[..] else {
        bail!("{command:?} was not measured");
    };
    Ok(Cost {
        wall: Duration::from_micros(wall),
        cpu: Duration::from_micros(cpu),
        memory,
    })
}

/// The median of each figure.
pub(super) fn median(costs: &[Cost]) -> Cost {
    fn middle<T: Copy + Ord + Default>(costs: &[Cost], figure: impl Fn(&Cost) -> T) -> T {
        let mut figures: Vec<T> = costs.iter().map(figure).collect();
        figures.sort_unstable();
        figures.get(figures.len() / 2).copied().unwrap_or_default()
    }
    Cost {
        wall: middle(costs, |cost| cost.wall),
        cpu: middle(costs, |cost| cost.cpu),
        memory: middle(costs, |cost| cost.memory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_taken_of_each_figure_by_itself() {
        let cost = |wall, cpu, memory| Cost {
            wall: Duration::from_millis(wall),
            cpu: Duration::from_millis(cpu),
            memory,
        };
        let median = median(&[cost(1, 9, 5), cost(2, 8, 6), cost(9, 1, 7)]);
        assert_eq!(median.wall, Duration::from_millis(2));
        assert_eq!(median.cpu, Duration::from_millis(8));
        assert_eq!(median.memory, 6);
    }
}
