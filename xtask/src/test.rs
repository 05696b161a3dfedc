//! `cargo xtask test`: runs every test.

use std::process::Command;
use std::thread;

use anyhow::{Context, Result, ensure};
use control_plane::{Binary, OLDEST_KUBERNETES_VERSION};

use crate::cargo::{cargo, run, run_build};
use crate::control_plane::{ensure_built, missing};
use crate::memory;
use crate::output::print;
use crate::test_requirements::Requirement;

/// Run all tests, including those on a real etcd and kube-apiserver
///
/// Builds the control plane first if it is missing, at the same time as the tests if there is enough
/// memory.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print a dot per test, and the full output of failed tests
    #[arg(short, long)]
    quiet: bool,

    /// Run only the tests of the admission policies, on the oldest supported Kubernetes
    ///
    /// The first run compiles that release, which takes about five minutes more.
    #[arg(long)]
    oldest_kubernetes: bool,
}

/// Runs on after a failure, to show all failures.
const TESTS: [&str; 4] = ["test", "--workspace", "--all-targets", "--no-fail-fast"];
/// Those of the policies, which work on older releases too.
const POLICY_TESTS: [&str; 3] = ["test", "--package=kubectl-maint", "--test=policy"];

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        if self.oldest_kubernetes {
            return self.run_on_oldest_kubernetes();
        }
        if !missing(&Binary::ALL)?.is_empty() && memory::allows_two_compilers() {
            thread::scope(|scope| {
                let go = scope.spawn(|| ensure_built(&Binary::ALL));
                let rust = run_build("the tests", cargo(&TESTS).arg("--no-run"));
                let go = go
                    .join()
                    .ok()
                    .context("building the control plane panicked")?;
                go.and(rust)
            })?;
        }
        ensure_built(&Binary::ALL)?;
        let missing: Vec<Requirement> = Requirement::missing().collect();
        for requirement in &missing {
            print(requirement.warning());
        }
        let mut tests = cargo(&TESTS);
        let mut examples_in_docs = cargo(&["test", "--workspace", "--doc"]);
        if self.quiet {
            tests.args(["--", "--quiet"]);
            examples_in_docs.args(["--", "--quiet"]);
        }
        // The tests mostly wait for the servers that they started. With more than one a core, the cores work meanwhile.
        let cores = thread::available_parallelism().context("the number of cores is unknown")?;
        tests.env("RUST_TEST_THREADS", (cores.get() * 2).to_string());
        tests.envs(
            missing
                .iter()
                .map(|requirement| (requirement.variable, "1")),
        );
        for command in [&mut tests, &mut examples_in_docs] {
            for binary in Binary::ALL {
                command.env(binary.variable(), binary.locate()?);
            }
            run(command)?;
        }
        Ok(())
    }

    fn run_on_oldest_kubernetes(&self) -> Result<()> {
        ensure_built(&Binary::CONTROL_PLANE)?;
        ensure_built(&Binary::OLDEST_KUBERNETES)?;
        let mut tests = cargo(&POLICY_TESTS);
        if self.quiet {
            tests.args(["--", "--quiet"]);
        }
        for (used, oldest) in [Binary::KubeApiserver, Binary::KubeControllerManager]
            .into_iter()
            .zip(Binary::OLDEST_KUBERNETES)
        {
            let program = oldest.locate()?;
            let version = Command::new(&program).arg("--version").output()?;
            let version = String::from_utf8_lossy(&version.stdout).into_owned();
            ensure!(
                version.trim_end().ends_with(OLDEST_KUBERNETES_VERSION),
                "{} is not {OLDEST_KUBERNETES_VERSION}: {version}",
                program.display()
            );
            tests.env(used.variable(), program);
        }
        run(&mut tests)
    }
}
