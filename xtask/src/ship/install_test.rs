//! Tests the files of a release with the tools that users have. Installs and removes packages in temporary directories,
//! and runs the plugin of the image.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use flate2::read::GzDecoder;
use serde::Deserialize;

use crate::cargo::{run, succeeds};
use crate::dist::platform::Platform;
use crate::dist::{PLUGIN, VERSION, program_path};
use crate::output::print;

pub(super) struct InstallTest {
    /// Whether every file must be tested. If not, a warning names each file that was not tested.
    all_required: bool,
}

impl InstallTest {
    pub(super) fn new(all_required: bool) -> Self {
        Self { all_required }
    }

    fn skip(&self, file: &Path, obstacle: &str) -> Result<()> {
        let skipped = format!("{} was not tested: {obstacle}", file.display());
        ensure!(!self.all_required, skipped);
        print(format_args!("warning: {skipped}"));
        Ok(())
    }

    /// Installs a deb or rpm package of `program`, and removes it.
    pub(super) fn package(&self, package: &Path, program: &str, platform: Platform) -> Result<()> {
        let content = fs::read(program_path(program, platform))?;
        let is_deb = package.extension().is_some_and(|of| of == "deb");
        let can_run = platform == Platform::here();
        let outcome = match (is_deb, has("dpkg"), has("rpm"), AsRoot::find()) {
            (true, true, ..) => test_package(program, &content, can_run, &Deb { package }),
            (true, false, ..) => return self.skip(package, "dpkg is not installed"),
            (false, _, true, Some(root)) => {
                test_package(program, &content, can_run, &Rpm { package, root })
            }
            (false, _, false, _) => return self.skip(package, "rpm is not installed"),
            (false, _, true, None) => {
                return self.skip(package, "rpm needs root or a user namespace");
            }
        };
        outcome.with_context(|| format!("{} failed its test", package.display()))?;
        passed(package);
        Ok(())
    }

    /// Unpacks the image of each platform, and runs the plugin of this machine's image in its root directory.
    pub(super) fn image(&self, image: &Path) -> Result<()> {
        if !has("skopeo") {
            return self.skip(image, "skopeo is not installed");
        }
        let mut program_ran = false;
        for platform in [Platform::LinuxAmd64, Platform::LinuxArm64] {
            let root = unpack_image(image, platform)?;
            check_shared(PLUGIN.program, &root.path().join("usr/local/share"))?;
            if platform == Platform::here()
                && let Some(as_root) = AsRoot::find()
            {
                let program = format!("/usr/local/bin/{}", PLUGIN.program);
                let mut chroot = as_root.command("chroot");
                chroot
                    .arg(root.path())
                    .args([&program, "version", "--client"]);
                run(chroot.stdout(Stdio::null())).context("the plugin of the image")?;
                program_ran = true;
            }
        }
        if !program_ran {
            return self.skip(image, "chroot needs root or a user namespace");
        }
        passed(image);
        Ok(())
    }

    /// Lets Ruby parse Homebrew's formula.
    pub(super) fn formula(&self, formula: &Path) -> Result<()> {
        if !has("ruby") {
            return self.skip(formula, "ruby is not installed");
        }
        run(Command::new("ruby")
            .arg("-c")
            .arg(formula)
            .stdout(Stdio::null()))?;
        passed(formula);
        Ok(())
    }
}

/// A package that can be installed below a directory.
trait Package {
    /// The directory in which the tool keeps its list of packages.
    const DATABASE: &'static str;

    fn install(&self, root: &Path) -> Result<()>;

    fn remove(&self, program: &str, root: &Path) -> Result<()>;
}

struct Deb<'a> {
    package: &'a Path,
}

struct Rpm<'a> {
    package: &'a Path,
    root: AsRoot,
}

impl Deb<'_> {
    fn dpkg(root: &Path) -> Command {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", root.display()))
            .args([
                "--force-not-root",
                "--force-architecture",
                "--log=/dev/null",
            ])
            .stdout(Stdio::null());
        dpkg
    }
}

impl Package for Deb<'_> {
    const DATABASE: &'static str = "var/lib/dpkg";

    fn install(&self, root: &Path) -> Result<()> {
        let database = root.join(Self::DATABASE);
        for directory in ["info", "triggers", "updates"] {
            fs::create_dir_all(database.join(directory))?;
        }
        fs::write(database.join("status"), "")?;
        fs::write(database.join("available"), "")?;
        run(Self::dpkg(root).arg("--install").arg(self.package))
    }

    fn remove(&self, program: &str, root: &Path) -> Result<()> {
        run(Self::dpkg(root).args(["--purge", program]))
    }
}

impl Rpm<'_> {
    fn rpm(&self, root: &Path) -> Command {
        let mut rpm = self.root.command("rpm");
        rpm.arg("--root")
            .arg(root)
            .args(["--dbpath", "/var/lib/rpm"]);
        rpm
    }
}

impl Package for Rpm<'_> {
    const DATABASE: &'static str = "var/lib/rpm";

    fn install(&self, root: &Path) -> Result<()> {
        run(self.rpm(root).args(["--initdb"]))?;
        run(self
            .rpm(root)
            .args(["--install", "--ignorearch"])
            .arg(self.package))
    }

    fn remove(&self, program: &str, root: &Path) -> Result<()> {
        run(self.rpm(root).args(["--erase", program]))
    }
}

/// Fails if completions, the man page or the licenses of the program are missing in `shared`. zsh uses one of two
/// directories, images do not compress man pages, and rpm packages have another directory for licenses.
fn check_shared(program: &str, shared: &Path) -> Result<()> {
    for places in [
        vec![format!("bash-completion/completions/{program}")],
        vec![format!("fish/vendor_completions.d/{program}.fish")],
        vec![
            format!("zsh/vendor-completions/_{program}"),
            format!("zsh/site-functions/_{program}"),
        ],
        vec![
            format!("man/man1/{program}.1.gz"),
            format!("man/man1/{program}.1"),
        ],
        vec![
            format!("doc/{program}/THIRD-PARTY-LICENSES"),
            format!("licenses/{program}/THIRD-PARTY-LICENSES"),
        ],
    ] {
        let is_there = places.iter().any(|place| shared.join(place).is_file());
        ensure!(is_there, "{} is missing", places.join(" or "));
    }
    Ok(())
}

/// Fails if the package does not install `content` as the program together with its other files, or does not remove all
/// files. Runs the program if this machine can.
fn test_package<P: Package>(
    program: &str,
    content: &[u8],
    can_run: bool,
    package: &P,
) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let root = directory.path();
    package.install(root)?;
    let programs = root.join("usr/bin");
    let installed = fs::read(programs.join(program));
    ensure!(
        installed.context("the package has no program")? == content,
        "the program is not the one that was built"
    );
    if can_run {
        let mut version = Command::new(programs.join(program));
        run(version.arg("--version").stdout(Stdio::null()))?;
    }
    if let Some(plugin) = program.strip_prefix("kubectl-") {
        let completer = fs::read(programs.join(format!("kubectl_complete-{plugin}")));
        ensure!(
            completer.is_ok_and(|completer| completer == content),
            "the link for completion is missing"
        );
    }
    check_shared(program, &root.join("usr/share"))?;
    package.remove(program, root)?;
    let left = files(root, &root.join(P::DATABASE))?;
    ensure!(left.is_empty(), "the package left {left:?}");
    Ok(())
}

/// The files below a directory, except those in `except`.
fn files(directory: &Path, except: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if path == except {
            continue;
        }
        match entry.file_type()?.is_dir() {
            true => found.extend(files(&path, except)?),
            false => found.push(path),
        }
    }
    Ok(found)
}

/// Unpacks the image of a platform. skopeo compares its checksums first.
fn unpack_image(image: &Path, platform: Platform) -> Result<tempfile::TempDir> {
    #[derive(Deserialize)]
    struct Manifest {
        layers: Vec<Layer>,
    }
    #[derive(Deserialize)]
    struct Layer {
        digest: String,
    }
    let copy = tempfile::tempdir()?;
    run(Command::new("skopeo")
        .args(["--insecure-policy", "--override-os", platform.os()])
        .args(["--override-arch", platform.arch(), "copy", "--quiet"])
        .arg(format!("oci-archive:{}:{VERSION}", image.display()))
        .arg(format!("dir:{}", copy.path().display())))?;
    let manifest = fs::read(copy.path().join("manifest.json"))?;
    let manifest: Manifest = serde_json::from_slice(&manifest)?;
    let root = tempfile::tempdir()?;
    for layer in manifest.layers {
        let name = layer.digest.trim_start_matches("sha256:");
        let layer = fs::File::open(copy.path().join(name))?;
        tar::Archive::new(GzDecoder::new(layer)).unpack(root.path())?;
    }
    Ok(root)
}

/// How to run a program that needs root for `chroot`.
#[derive(Clone, Copy)]
enum AsRoot {
    Direct,
    UserNamespace,
}

impl AsRoot {
    /// `None` if this machine allows neither root nor a user namespace.
    fn find() -> Option<Self> {
        let can = |way: &Self| succeeds(way.command("chroot").args(["/", "true"]));
        [Self::Direct, Self::UserNamespace].into_iter().find(can)
    }

    fn command(self, program: &str) -> Command {
        match self {
            Self::Direct => Command::new(program),
            Self::UserNamespace => {
                let mut unshare = Command::new("unshare");
                unshare.args(["--map-root-user", program]);
                unshare
            }
        }
    }
}

fn has(tool: &str) -> bool {
    succeeds(Command::new(tool).arg("--version"))
}

fn passed(file: &Path) {
    print(format_args!("{} passed its test", file.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A package with these files, which leaves one of them when it is removed.
    struct Fake {
        files: &'static [&'static str],
        left: Option<&'static str>,
    }

    impl Package for Fake {
        const DATABASE: &'static str = "var/lib/fake";

        fn install(&self, root: &Path) -> Result<()> {
            for file in self.files.iter().chain(&["var/lib/fake/status"]) {
                let path = root.join(file);
                fs::create_dir_all(path.parent().unwrap())?;
                fs::write(path, "built")?;
            }
            Ok(())
        }

        fn remove(&self, _: &str, root: &Path) -> Result<()> {
            for file in self.files {
                if Some(*file) != self.left {
                    fs::remove_file(root.join(file))?;
                }
            }
            Ok(())
        }
    }

    const FILES: &[&str] = &[
        "usr/bin/kubectl-maint",
        "usr/bin/kubectl_complete-maint",
        "usr/share/bash-completion/completions/kubectl-maint",
        "usr/share/fish/vendor_completions.d/kubectl-maint.fish",
        "usr/share/zsh/site-functions/_kubectl-maint",
        "usr/share/man/man1/kubectl-maint.1.gz",
        "usr/share/licenses/kubectl-maint/THIRD-PARTY-LICENSES",
    ];

    #[test]
    fn a_package_that_installs_the_program_and_leaves_nothing_passes() {
        let package = Fake {
            files: FILES,
            left: None,
        };
        test_package("kubectl-maint", b"built", false, &package).unwrap();
    }

    #[test]
    fn a_package_that_lacks_a_file_is_refused() {
        for missing in 1..FILES.len() {
            let mut files = FILES.to_vec();
            let missing = files.remove(missing);
            let package = Fake {
                files: files.leak(),
                left: None,
            };
            let error = test_package("kubectl-maint", b"built", false, &package).unwrap_err();
            assert!(
                error.to_string().ends_with(" is missing"),
                "{missing}: {error}"
            );
        }
    }

    #[test]
    fn a_package_without_the_program_or_with_another_one_is_refused() {
        let package = Fake {
            files: FILES,
            left: None,
        };
        for (program, content, expected) in [
            ("lease-elect", b"built", "the package has no program"),
            (
                "kubectl-maint",
                b"older",
                "the program is not the one that was built",
            ),
        ] {
            let error = test_package(program, content, false, &package).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_package_that_leaves_a_file_is_refused() {
        let package = Fake {
            files: FILES,
            left: Some(FILES[1]),
        };
        let error = test_package("kubectl-maint", b"built", false, &package).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(FILES[1]), "{error}");
    }
}
