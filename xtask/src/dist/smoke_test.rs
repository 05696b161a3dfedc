//! Runs the built plugin on a real API server, if this machine can run it: with qemu for another processor, with wine for
//! Windows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use control_plane::{Binary, ControlPlane, NodeSpec};
use tempfile::TempDir;

use super::cross::path as program_path;
use super::package::PLUGIN;
use super::platform::Platform;
use crate::cargo::succeeds;
use crate::control_plane::ensure_built;
use crate::output::print;

const NODE: &str = "worker-1";

/// A library that every Rust program needs and older releases of wine lack.
const REQUIRED_DLL: &str = "drive_c/windows/system32/bcryptprimitives.dll";

/// A real API server with one node, and a directory for temporary files.
pub(crate) struct SmokeTest {
    plane: ControlPlane,
    directory: TempDir,
}

/// What runs a program of another platform.
struct Runner {
    /// The command line: the program itself, or an emulator with the program as its argument.
    command: Vec<PathBuf>,
    wine_prefix: Option<PathBuf>,
    /// Whether the program can start itself again, as `with` does on Linux.
    can_start_itself: bool,
}

impl SmokeTest {
    /// Starts the server.
    pub(crate) fn start() -> Result<Self> {
        ensure_built(&Binary::CONTROL_PLANE)?;
        let plane = ControlPlane::start()?;
        plane.create_nodes(&[NodeSpec::ready(NODE)])?;
        plane.kubectl(&["create", "namespace", "kube-node-maintenance"])?;
        let directory = tempfile::tempdir()?;
        Ok(Self { plane, directory })
    }

    /// Runs the plugin that was built for `platform`. Warns if this machine can't run it.
    ///
    /// # Errors
    /// If a command does not do what it should.
    pub(crate) fn run(&self, platform: Platform) -> Result<()> {
        let program = program_path(PLUGIN.program, platform);
        let runner = match self.runner(&program, platform)? {
            Ok(runner) => runner,
            Err(obstacle) => {
                print(format_args!(
                    "warning: the plugin for {platform} was not run: {obstacle}"
                ));
                return Ok(());
            }
        };
        self.check_commands(&runner, platform)
            .with_context(|| format!("the plugin for {platform} failed its smoke test"))?;
        print(format_args!(
            "the plugin for {platform} passed its smoke test"
        ));
        Ok(())
    }

    /// How to run `program`, or why that is not possible.
    fn runner(
        &self,
        program: &Path,
        platform: Platform,
    ) -> Result<std::result::Result<Runner, &'static str>> {
        let program = program.to_owned();
        let direct = Runner {
            command: vec![program.clone()],
            wine_prefix: None,
            can_start_itself: true,
        };
        if succeeds(direct.command().args(["version", "--client"])) {
            return Ok(Ok(direct));
        }
        let installed = |name: &&str| succeeds(Command::new(name).arg("--version"));
        Ok(match platform {
            Platform::LinuxAmd64 | Platform::LinuxArm64 => {
                let qemu = match platform {
                    Platform::LinuxArm64 => ["qemu-aarch64", "qemu-aarch64-static"],
                    _ => ["qemu-x86_64", "qemu-x86_64-static"],
                };
                let qemu = qemu.iter().find(|name| installed(name));
                let runner = qemu.map(|qemu| Runner {
                    command: vec![qemu.into(), program],
                    wine_prefix: None,
                    can_start_itself: false,
                });
                runner.ok_or("qemu-user is not installed")
            }
            Platform::WindowsAmd64 if installed(&"wine") => {
                let prefix = self.wine_prefix()?;
                let has_dll = prefix.join(REQUIRED_DLL).exists();
                let runner = has_dll.then(|| Runner {
                    command: vec!["wine".into(), program],
                    wine_prefix: Some(prefix),
                    can_start_itself: true,
                });
                runner.ok_or("this wine is too old: it has no bcryptprimitives.dll")
            }
            Platform::WindowsAmd64 => Err("wine is not installed"),
            Platform::DarwinAmd64 | Platform::DarwinArm64 => Err("it runs only on macOS"),
        })
    }

    /// A new wine prefix, with the kubeconfig in each home directory.
    fn wine_prefix(&self) -> Result<PathBuf> {
        let prefix = self.directory.path().join("wine");
        let mut boot = Command::new("wine");
        boot.args(["wineboot", "--init"]).env("WINEPREFIX", &prefix);
        ensure!(succeeds(&mut boot), "wine could not create a prefix");
        for entry in fs::read_dir(prefix.join("drive_c/users"))? {
            let home = entry?.path();
            if !home.ends_with("Public") {
                self.write_kubeconfig(&home)?;
            }
        }
        Ok(prefix)
    }

    /// Writes the kubeconfig into `home`.
    fn write_kubeconfig(&self, home: &Path) -> Result<()> {
        let directory = home.join(".kube");
        fs::create_dir_all(&directory)?;
        fs::copy(self.plane.admin_kubeconfig(), directory.join("config"))?;
        Ok(())
    }

    fn check_commands(&self, runner: &Runner, platform: Platform) -> Result<()> {
        let home = self.directory.path().join("home");
        self.write_kubeconfig(&home)?;
        let found = self.plane.admin_kubeconfig();
        let missing = self.directory.path().join("missing");
        // Paths as the program sees them.
        let windows = platform == Platform::WindowsAmd64;
        let (drive, separator) = if windows { ("Z:", ";") } else { ("", ":") };
        let kubeconfig = [missing.as_path(), found]
            .map(|path| format!("{drive}{}", path.display()))
            .join(separator);
        let from_list: &[_] = &[("KUBECONFIG", kubeconfig.as_str())];
        let home = home.to_string_lossy();
        let from_home: &[_] = &[("HOME", &*home)];
        let check = |arguments: &[&str], variables, code, expected: &str| {
            runner.check(arguments, variables, code, expected)
        };
        let version = env!("CARGO_PKG_VERSION");
        check(&["version"], from_list, 0, version)?;
        check(&["acquire", "--help"], &[], 0, "Usage:")?;
        let acquire = ["acquire", NODE, "--holder", "smoke-test", "-m", "a test"];
        check(&acquire, from_list, 0, "acquired")?;
        check(&["status", NODE], from_home, 0, "smoke-test")?;
        let bob = ["acquire", NODE, "--holder", "bob"];
        check(&bob, from_list, 3, "smoke-test")?;
        let release = ["release", NODE, "--holder", "smoke-test"];
        check(&release, from_list, 0, "released")?;
        if runner.can_start_itself {
            let shell: &[_] = match windows {
                true => &["cmd", "/c", "echo %MAINT_NODE%& exit 42"],
                false => &["sh", "-c", "echo $MAINT_NODE; exit 42"],
            };
            let with = [&["with", NODE, "--quiet", "--"], shell].concat();
            check(&with, from_list, 42, NODE)?;
            let missing = ["with", NODE, "--", "no-such-program"];
            check(&missing, from_list, 127, "error: failed to run")?;
        } else {
            print(format_args!(
                "warning: `with` of the plugin for {platform} was not run: binfmt_misc is not set up for qemu"
            ));
        }
        check(&["status", NODE], from_list, 0, "Free")
    }
}

impl Runner {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        if let Some(prefix) = &self.wine_prefix {
            command.env("WINEPREFIX", prefix).env("WINEDEBUG", "-all");
        }
        command
    }

    /// Runs the program, which must end with `code` and print `expected`.
    fn check(
        &self,
        arguments: &[&str],
        variables: &[(&str, &str)],
        code: i32,
        expected: &str,
    ) -> Result<()> {
        let mut command = self.command();
        command.args(arguments).env_remove("KUBECONFIG");
        let output = command.envs(variables.iter().copied()).output()?;
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        ensure!(
            output.status.code() == Some(code) && printed.contains(expected),
            "`{}` should end with code {code} and print {expected:?}, but: {}\n{printed}",
            arguments.join(" "),
            output.status
        );
        Ok(())
    }
}
