//! `cargo xtask test`: runs every test.

use std::ffi::OsString;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, ensure};
use control_plane::{Binary, OLDEST_KUBERNETES_VERSION, target_dir};

use crate::cargo::{cargo, run};
use crate::control_plane::ensure_built;
use crate::output::print;
use crate::smoke_test;
use crate::test_programs::{self, Program};
use crate::test_requirements::Requirement;

/// Run all tests, including those on a real etcd and kube-apiserver
///
/// Builds the control plane first if it is missing.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print a dot per test, and the full output of failed tests
    #[arg(short, long)]
    quiet: bool,

    /// Run every test of the commands on the real API server too, not only a part of them
    #[arg(long)]
    all_on_real: bool,

    /// Fail if a program or right that some tests need is missing, instead of skipping these tests
    #[arg(long)]
    require_everything: bool,

    /// Run only the tests of the admission policies, on the oldest supported Kubernetes
    ///
    /// The first run compiles that release, which takes about five minutes more.
    #[arg(long, conflicts_with_all = ["all_on_real", "require_everything"])]
    oldest_kubernetes: bool,
}

/// The variable that the tests of the commands read.
const ALL_ON_REAL: &str = "TESTS_ALL_ON_REAL";

const BUILD: [&str; 4] = ["test", "--workspace", "--all-targets", "--no-run"];
/// The tests of the policies, which also run on older releases.
const BUILD_POLICY_TESTS: [&str; 4] = [
    "test",
    "--package=kubectl-maint",
    "--test=policy",
    "--no-run",
];

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        if self.oldest_kubernetes {
            return self.run_on_oldest_kubernetes();
        }
        let missing_requirements: Vec<Requirement> = Requirement::missing().collect();
        for requirement in &missing_requirements {
            print(requirement.warning());
        }
        ensure!(
            !self.require_everything || missing_requirements.is_empty(),
            "--require-everything: something that the tests need is missing"
        );
        ensure_built(&Binary::ALL)?;
        let programs = test_programs::built(&mut cargo(&BUILD))?;
        let mut variables: Vec<(&str, OsString)> = Vec::new();
        for binary in Binary::ALL {
            variables.push((binary.variable(), binary.locate()?.into()));
        }
        for requirement in &missing_requirements {
            variables.push((requirement.variable, "1".into()));
        }
        if self.all_on_real {
            variables.push((ALL_ON_REAL, "1".into()));
        }
        let tested = self.run_programs(programs, &variables);
        let tested = tested.and(smoke_test::run(&target_dir().join("debug/kubectl-maint")));
        let mut examples = cargo(&["test", "--workspace", "--doc"]);
        if self.quiet {
            examples.args(["--", "--quiet"]);
        }
        tested.and(run(examples.envs(variables)))
    }

    /// Runs all programs, even after a failure, to show all failures.
    fn run_programs(&self, programs: Vec<Program>, variables: &[(&str, OsString)]) -> Result<()> {
        // The tests mostly wait for the servers that they started. With more threads than cores, the cores are used
        // during these waits.
        let cores = thread::available_parallelism().context("the number of cores is unknown")?;
        let threads = (cores.get() * 2).to_string();
        test_programs::run(programs, |command| {
            command.env("RUST_TEST_THREADS", &threads);
            command.envs(variables.iter().map(|(name, value)| (name, value)));
            if self.quiet {
                command.arg("--quiet");
            }
        })
    }

    fn run_on_oldest_kubernetes(&self) -> Result<()> {
        ensure_built(&Binary::CONTROL_PLANE)?;
        ensure_built(&Binary::OLDEST_KUBERNETES)?;
        let programs = test_programs::built(&mut cargo(&BUILD_POLICY_TESTS))?;
        let mut variables = Vec::new();
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
            variables.push((used.variable(), program.into()));
        }
        self.run_programs(programs, &variables)
    }
}
