//! `cargo xtask check`: what every commit must pass.

use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::cargo::{cargo, run};
use crate::output::print;
use crate::test_requirements::Requirement;
use crate::{r#gen, platforms};

/// Check what every commit must pass, in under five minutes
///
/// Checks the format, the lints, the shipped packages on macOS and Windows (see `platforms`), the tests
/// that need no real API server, and the generated files (see `gen --check`). Stops at the first step
/// that fails. `cargo xtask test` runs every test.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        let began = Instant::now();
        step("format", || run(&mut cargo(&["fmt", "--all", "--check"])))?;
        step("lints", || {
            let mut clippy = cargo(&["clippy", "--locked", "--workspace", "--all-targets"]);
            run(clippy.args(["--", "-D", "warnings"]))
        })?;
        step("build of the tests", || run(tests().arg("--no-run")))?;
        step(
            "tests without a real API server, and other platforms",
            || {
                // The tests mostly wait, so the compiler can run at the same time.
                thread::scope(|scope| {
                    let platforms = scope.spawn(|| platforms::Arguments {}.run());
                    let tested = run(tests().args(["--", "--quiet"]));
                    let checked = platforms.join();
                    tested.and(
                        checked
                            .ok()
                            .context("the check of other platforms panicked")?,
                    )
                })
            },
        )?;
        step("source and docs", || {
            // `--workspace` keeps the features of the step before, so nothing is built again.
            let mut tests = cargo(&["test", "--locked", "--workspace", "--test", "packaging"]);
            run(tests.arg("--").args(OF_SOURCE).arg("--quiet"))
        })?;
        let generated = r#gen::Arguments {
            check: true,
            built: false,
        };
        step("generated files", || generated.run())?;
        print(format_args!("passed in {} s", began.elapsed().as_secs()));
        Ok(())
    }
}

fn step(name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    print(format_args!("== {name}"));
    let began = Instant::now();
    work().with_context(|| format!("check of {name} failed"))?;
    print(format_args!("   {} s", began.elapsed().as_secs()));
    Ok(())
}

/// The tests in `packaging` that read only the source and the docs.
const OF_SOURCE: [&str; 5] = [
    "layers::",
    "links::",
    "sentences::",
    "troubleshooting::",
    "walk::",
];

/// The test binaries with tests that need no real API server. Those of the supervisor run only in `cargo
/// xtask test`, because they are unreliable on a busy machine.
const BINARIES: [&str; 3] = ["cli", "client", "cluster"];

/// Unit tests of all packages, and the test binaries that mostly need no real API server.
fn tests() -> Command {
    let mut tests = cargo(&["test", "--locked", "--workspace", "--no-fail-fast"]);
    tests.args(["--lib", "--bins"]);
    for binary in BINARIES {
        tests.args(["--test", binary]);
    }
    tests.env(control_plane::WITHOUT_KUBERNETES, "1");
    // The tests mostly wait, so run more threads than there may be cores.
    tests.env("RUST_TEST_THREADS", "8");
    tests.envs(Requirement::missing().map(|requirement| (requirement.variable, "1")));
    tests
}
