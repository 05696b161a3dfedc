//! The plugin of an earlier commit.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use control_plane::target_dir;

use crate::cargo::{cargo, run_build};

/// Builds the plugin of this commit, unless it has been built before. Returns its path.
pub(crate) fn build_plugin_of(commit: &str) -> Result<PathBuf> {
    let commit = git(&["rev-parse", "--verify", &format!("{commit}^{{commit}}")])?;
    let commit = String::from_utf8(commit)?;
    let all = target_dir().join("previous");
    let sources = all.join(commit.trim_end());
    let plugin = sources.join("kubectl-maint");
    if plugin.exists() {
        return Ok(plugin);
    }
    let archive = git(&["archive", commit.trim_end()])?;
    fs::create_dir_all(&sources)?;
    tar::Archive::new(archive.as_slice()).unpack(&sources)?;
    let target = all.join("build");
    let mut build = cargo(&["build", "--package=kubectl-maint", "--bin=kubectl-maint"]);
    build.current_dir(&sources).env("CARGO_TARGET_DIR", &target);
    run_build("the earlier plugin", &mut build)?;
    fs::copy(target.join("debug/kubectl-maint"), &plugin)?;
    Ok(plugin)
}

fn git(arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .context("failed to run git")?;
    ensure!(
        output.status.success(),
        "git {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.stdout)
}
