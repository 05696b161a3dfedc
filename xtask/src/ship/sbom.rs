//! Software bills of materials (SBOM) in the CycloneDX format, by cargo-cyclonedx.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::Result;
use chrono::{DateTime, Utc};
use control_plane::target_dir;
use serde::Deserialize;

use crate::cargo::{cargo, run, succeeds};
use crate::dist::{Files, VERSION, root};
use crate::output::print;

const TOOL_VERSION: &str = "0.5.9";

/// The file that the tool writes to the directory of each package's manifest.
const WRITTEN: &str = "sbom.cdx.json";

/// Writes a bill of materials for each program, with its dependencies on all platforms.
pub(super) fn write(programs: &[&str], time: DateTime<Utc>, files: &mut Files) -> Result<()> {
    let tools = install()?;
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(
        [tools.join("bin")]
            .into_iter()
            .chain(env::split_paths(&path)),
    )?;
    let written = run(cargo(&["cyclonedx", "--quiet", "--format", "json"])
        .args(["--target", "all", "--spec-version", "1.5"])
        .args(["--override-filename", WRITTEN.trim_end_matches(".json")])
        .env("PATH", path)
        .env("SOURCE_DATE_EPOCH", time.timestamp().to_string()));
    let root = root()?;
    for package in packages()? {
        let file = package.manifest_path.with_file_name(WRITTEN);
        if written.is_ok() && programs.contains(&package.name.as_str()) {
            let name = format!("{}-{VERSION}.cdx.json", package.name);
            files.write(
                &name,
                without_paths(&fs::read_to_string(&file)?, &root).as_bytes(),
            )?;
        }
        // It may be missing if the tool failed.
        let _ = fs::remove_file(file);
    }
    written
}

/// Replaces the directory of this checkout. The same commit must give the same file everywhere.
fn without_paths(sbom: &str, root: &Path) -> String {
    sbom.replace(&format!("file://{}", root.display()), "file://.")
}

/// Compiles the tool if it is missing, and returns its directory.
fn install() -> Result<PathBuf> {
    let name = format!("cargo-cyclonedx-{TOOL_VERSION}");
    let directory = target_dir().join("tools").join(&name);
    let tool = directory.join("bin/cargo-cyclonedx");
    // The directory may exist after an interrupted installation, so the program is checked.
    if !succeeds(Command::new(tool).args(["cyclonedx", "--version"])) {
        print(format_args!("installing {name}"));
        run(
            cargo(&["install", "--quiet", "--locked", "cargo-cyclonedx"])
                .args(["--version", TOOL_VERSION, "--root"])
                .arg(&directory),
        )?;
    }
    Ok(directory)
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
}

/// The packages of the workspace.
fn packages() -> Result<Vec<Package>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    let output = cargo(&["metadata", "--locked", "--no-deps", "--format-version=1"]).output()?;
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    Ok(metadata.packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_the_checkout_is_not_in_it() {
        let sbom = r#"{"bom-ref": "path+file:///home/alice/maint/crates/connect#0.1.0"}"#;
        assert_eq!(
            without_paths(sbom, Path::new("/home/alice/maint")),
            r#"{"bom-ref": "path+file://./crates/connect#0.1.0"}"#
        );
    }

    #[test]
    fn both_programs_are_packages_of_the_workspace() {
        let names: Vec<String> = packages().unwrap().into_iter().map(|of| of.name).collect();
        for program in ["kubectl-maint", "lease-elect"] {
            assert!(names.contains(&program.to_owned()), "{names:?}");
        }
    }
}
