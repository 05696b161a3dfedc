//! The cross compiler: zig as linker and C compiler for every platform, driven by cargo-zigbuild.
//!
//! Both come from the Python package index as pinned packages, so a release needs no system packages and no
//! SDK. Their directory is in the build directory.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use control_plane::target_dir;

use super::platform::Platform;
use crate::cargo::{cargo, run, run_build, succeeds};
use crate::output::print;

const PACKAGES: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.0"];

/// An installed cross compiler.
pub(super) struct CrossCompiler {
    path: OsString,
}

impl CrossCompiler {
    /// Installs what is missing.
    ///
    /// # Errors
    ///
    /// If Python with its `venv` module is missing, or a package cannot be installed.
    pub(super) fn install() -> Result<Self> {
        let directory = target_dir().join("tools").join(PACKAGES.join("+"));
        let bin = directory.join("bin");
        let installed = succeeds(Command::new(bin.join("python-zig")).arg("version"))
            && succeeds(Command::new(bin.join("cargo-zigbuild")).arg("--version"));
        if !installed {
            print(format_args!("installing {}", PACKAGES.join(" and ")));
            run(Command::new("python3").args(["-m", "venv"]).arg(&directory))
                .context("this needs Python 3 with its venv module")?;
            run(Command::new(bin.join("python"))
                .args([
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                ])
                .args(PACKAGES))?;
        }
        let rest = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([bin].into_iter().chain(env::split_paths(&rest)))?;
        Ok(Self { path })
    }

    /// Builds a program and returns its path. The paths of this machine are removed from the result. Each
    /// program is built separately, because cargo would enable the library features of both in each.
    pub(super) fn build(&self, root: &Path, program: &str, platform: Platform) -> Result<PathBuf> {
        let target = platform.target();
        run(Command::new("rustup").args(["--quiet", "target", "add", target]))
            .context("this needs rustup")?;
        let mut flags = platform.rust_flags(&root.join("xtask/src/dist/frameworks"));
        for (from, to) in [(Some(root.to_owned()), "."), (cargo_home(), "cargo")] {
            let from = from.context("there is no home directory")?;
            flags.push(format!("--remap-path-prefix={}={to}", from.display()));
        }
        run_build(
            &format!("{program} for {platform}"),
            cargo(&["zigbuild", "--release", "--locked", "--package", program])
                .args(["--bin", program, "--target", target])
                .env("PATH", &self.path)
                // The oldest macOS that runs the program. zig's own default is a recent one.
                .env("MACOSX_DEPLOYMENT_TARGET", "11.0")
                .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f")),
        )?;
        Ok(path(program, platform))
    }
}

/// Where a build puts a program.
pub(crate) fn path(program: &str, platform: Platform) -> PathBuf {
    let release = target_dir().join(platform.target()).join("release");
    release.join(platform.executable(program))
}

fn cargo_home() -> Option<PathBuf> {
    let home = || Some(Path::new(&env::var_os("HOME")?).join(".cargo"));
    env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home)
}
