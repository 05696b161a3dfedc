//! `cargo xtask platforms`: checks that the shipped packages compile for other systems.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use anyhow::Result;

use crate::cargo::{cargo, run, succeeds};
use crate::output::print;

/// Type-check the shipped packages for macOS and Windows
///
/// Also checks the tests of the packages that have code for these systems, and xtask for macOS, because a release is
/// tested there with it.
///
/// Nothing is linked, so no compiler for these systems is needed. rustup installs Rust's standard library for them. A
/// system that can't be set up, for example without rustup or a network, is skipped with a warning.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

/// The packages whose tests also support other systems.
const WITH_TESTS: [&str; 2] = ["boot-clock", "supervisor"];

const MACOS: &str = "aarch64-apple-darwin";

/// One target for each system, because none of our code depends on the processor.
const TARGETS: [&str; 2] = [MACOS, "x86_64-pc-windows-gnu"];

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        for target in TARGETS.into_iter().filter(|target| is_ready(target)) {
            let mut packages = shipped()?;
            if target == MACOS {
                packages.push("xtask".to_owned());
            }
            run(&mut clippy(&packages, target, &[]))?;
            run(&mut clippy(&WITH_TESTS, target, &["--tests"]))?;
        }
        Ok(())
    }
}

/// The clippy command for these packages.
fn clippy(packages: &[impl AsRef<str>], target: &str, what: &[&str]) -> Command {
    let mut clippy = cargo(&["clippy", "--locked", "--target", target]);
    clippy.args(what);
    for package in packages {
        clippy.args(["--package", package.as_ref()]);
    }
    clippy.envs(without_c_compiler(target));
    clippy.args(["--", "-D", "warnings"]);
    clippy
}

/// The plugin and the packages in `crates/`, which have the names of their directories, without lease-elect, which is
/// for Linux only.
fn shipped() -> Result<Vec<String>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut packages = vec!["kubectl-maint".to_owned()];
    for directory in fs::read_dir(crates)? {
        packages.push(directory?.file_name().to_string_lossy().into_owned());
    }
    packages.retain(|package| package != "lease-elect");
    packages.sort();
    Ok(packages)
}

/// Installs everything that the check for `target` needs. If that fails, warns that the target is skipped.
fn is_ready(target: &str) -> bool {
    let obstacle = if !succeeds(Command::new("rustup").args(["target", "add", target])) {
        "rustup is missing, or cannot install this target"
    } else if !succeeds(&mut cargo(&["fetch", "--locked", "--target", target])) {
        "its dependencies cannot be downloaded"
    } else {
        return true;
    };
    print(format_args!("warning: skipped {target}: {obstacle}"));
    false
}

/// Build scripts compile C code even if Rust code is only checked. The result is never linked, so a program that does
/// nothing replaces a missing compiler. A compiler that is named in the environment is used instead.
fn without_c_compiler(target: &str) -> Vec<(String, OsString)> {
    if env::consts::OS == "macos" && target.contains("apple") {
        return Vec::new();
    }
    let named = |tool: &str| format!("{tool}_{}", target.replace('-', "_"));
    ["CC", "AR"]
        .map(named)
        .into_iter()
        .filter(|variable| env::var_os(variable).is_none())
        .map(|variable| (variable, "true".into()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_for_these_systems_are_checked() {
        let shipped = shipped().unwrap();
        assert!(shipped.contains(&"supervisor".to_owned()), "{shipped:?}");
        for other in ["sandbox", "lease-elect"] {
            assert!(!shipped.contains(&other.to_owned()), "{shipped:?}");
        }
        for tested in WITH_TESTS {
            assert!(shipped.contains(&tested.to_owned()), "{shipped:?}");
        }
    }

    #[test]
    fn the_c_compiler_is_replaced_for_other_systems_only() {
        let variables = without_c_compiler("x86_64-pc-windows-gnu");
        let names: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["CC_x86_64_pc_windows_gnu", "AR_x86_64_pc_windows_gnu"]
        );
    }
}
