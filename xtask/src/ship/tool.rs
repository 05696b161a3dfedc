//! Programs written in Go that make or check the files of a release.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use control_plane::target_dir;

use crate::cargo::run;
use crate::output::print;

/// Compiles the program of a package such as `example.com/module/cmd/tool@v1.2.3`, if it is missing.
pub(super) fn install(package: &str) -> Result<PathBuf> {
    let (path, version) = package
        .split_once('@')
        .with_context(|| format!("{package} has no version"))?;
    let (_, name) = path.rsplit_once('/').unwrap_or(("", path));
    let directory = target_dir().join("tools").join(format!("{name}@{version}"));
    let program = directory.join(name);
    if !program.exists() {
        print(format_args!("installing {name} {version}"));
        run(Command::new("go")
            .args(["install", package])
            .env("CGO_ENABLED", "0")
            .env("GOBIN", &directory))
        .context("this needs Go")?;
    }
    Ok(program)
}
