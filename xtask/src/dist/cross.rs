//! The cross compiler: zig as linker and C compiler for every platform, driven by cargo-zigbuild.
//!
//! Both come from the Python package index as pinned packages with checksums, so a release needs no system packages
//! and no SDK. Their directory is in the build directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use anyhow::{Context, Result};
use control_plane::target_dir;

use super::mach_o;
use super::package::sha256;
use super::platform::Platform;
use crate::cargo::{cargo, run, run_build, succeeds};
use crate::output::print;

/// The packages and their checksums.
const REQUIREMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/dist/requirements.txt");

/// An installed cross compiler.
pub(super) struct CrossCompiler {
    bin: PathBuf,
    /// The variable `PATH`, which includes `bin`.
    path: OsString,
}

impl CrossCompiler {
    /// Installs the packages that are missing.
    ///
    /// # Errors
    ///
    /// If Python with its `venv` module is missing, or a package cannot be installed.
    pub(super) fn install() -> Result<Self> {
        // Each version of the packages has its own directory.
        let version = sha256(&fs::read(REQUIREMENTS)?);
        let name = format!("cross-compiler-{}", &version[..12]);
        let directory = target_dir().join("tools").join(name);
        let bin = directory.join("bin");
        let installed = succeeds(Command::new(bin.join("python-zig")).arg("version"))
            && succeeds(Command::new(bin.join("cargo-zigbuild")).arg("--version"));
        if !installed {
            print("installing the cross compiler: zig and cargo-zigbuild");
            run(Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(&directory))
            .context("this needs Python 3 with its venv module")?;
            run(Command::new(bin.join("python"))
                .args(["-m", "pip", "install", "--quiet"])
                .args(["--disable-pip-version-check", "--only-binary=:all:"])
                .args(["--require-hashes", "--requirement", REQUIREMENTS]))?;
        }
        let rest = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([bin.clone()].into_iter().chain(env::split_paths(&rest)))?;
        Ok(Self { bin, path })
    }

    /// The directory with zig's own libraries.
    pub(super) fn zig_directory(&self) -> Result<PathBuf> {
        let find = "import ziglang; print(ziglang.__path__[0])";
        let python = self.bin.join("python");
        let output = Command::new(python).args(["-c", find]).output()?;
        Ok(String::from_utf8(output.stdout)?.trim_end().into())
    }

    /// Builds a program and returns its path. The paths of this machine are removed from the result. Each
    /// program is built separately, because cargo would enable the library features of both in each.
    pub(super) fn build(&self, root: &Path, program: &str, platform: Platform) -> Result<PathBuf> {
        let target = platform.target();
        run(Command::new("rustup").args(["--quiet", "target", "add", target]))
            .context("this needs rustup")?;
        let mut flags = platform.rust_flags(&root.join("xtask/src/dist/frameworks"));
        flags.extend(remaps(root, &cargo_home()?)?);
        run_build(
            &format!("{program} for {platform}"),
            cargo(&["zigbuild", "--release", "--locked", "--package", program])
                .args(["--bin", program, "--target", target])
                .env("PATH", &self.path)
                // The oldest macOS that runs the program. zig's own default is a recent one.
                .env("MACOSX_DEPLOYMENT_TARGET", mach_o::OLDEST)
                .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f")),
        )?;
        Ok(path(program, platform))
    }
}

/// The path of a built program.
pub(crate) fn path(program: &str, platform: Platform) -> PathBuf {
    let release = target_dir().join(platform.target()).join("release");
    release.join(platform.executable(program))
}

/// The directories of this machine whose paths must not be in a program.
pub(super) fn private_directories(root: &Path) -> Result<Vec<PathBuf>> {
    let mut directories = vec![cargo_home()?];
    // A very short path may be part of other paths: that of a checkout in /src, or a home directory /.
    directories.extend(home().filter(|home| home.parent().is_some()));
    directories.extend((root.components().count() > 2).then(|| root.to_owned()));
    Ok(directories)
}

/// Flags that replace the directories of this machine in paths.
fn remaps(root: &Path, cargo_home: &Path) -> Result<Vec<String>> {
    let mut replaced = vec![(root.to_owned(), "."), (cargo_home.to_owned(), "cargo")];
    // The names of these directories depend on the address of the registry or its mirror. rustc uses the last flag that
    // matches.
    let sources = match fs::read_dir(cargo_home.join("registry/src")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        sources => sources?.collect::<io::Result<_>>()?,
    };
    replaced.extend(
        sources
            .into_iter()
            .map(|directory| (directory.path(), "cargo/registry/src")),
    );
    let flag = |(from, to): &(PathBuf, _)| format!("--remap-path-prefix={}={to}", from.display());
    Ok(replaced.iter().map(flag).collect())
}

fn cargo_home() -> Result<PathBuf> {
    env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(home()?.join(".cargo")))
        .context("there is no home directory")
}

fn home() -> Option<PathBuf> {
    env::var_os("HOME").map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_registry_is_replaced_after_the_directory_that_it_is_in() {
        let home = tempfile::tempdir().unwrap();
        let sources = home.path().join("registry/src");
        fs::create_dir_all(sources.join("mirror-0123")).unwrap();
        let flags = remaps(Path::new("/checkout"), home.path()).unwrap();
        let home = home.path().display();
        assert_eq!(
            flags,
            [
                "--remap-path-prefix=/checkout=.".to_owned(),
                format!("--remap-path-prefix={home}=cargo"),
                format!("--remap-path-prefix={home}/registry/src/mirror-0123=cargo/registry/src"),
            ]
        );
    }

    #[test]
    fn a_registry_that_was_never_used_needs_no_flag() {
        let flags = remaps(Path::new("/checkout"), Path::new("/no/such/home")).unwrap();
        assert_eq!(flags.len(), 2);
    }

    #[test]
    fn each_package_has_a_checksum_for_each_system() {
        let text = fs::read_to_string(REQUIREMENTS).unwrap();
        let packages: Vec<_> = text.split("==").skip(1).collect();
        let checksums = packages
            .iter()
            .map(|of| of.matches("--hash=sha256:").count());
        // One file of cargo-zigbuild serves both processors of macOS.
        assert_eq!(checksums.collect::<Vec<_>>(), [4, 3]);
    }
}
