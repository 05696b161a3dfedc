//! Runs the built plugin on a real API server, if this machine can run it: with qemu for another processor, with wine for
//! Windows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use control_plane::{Binary, ControlPlane, Kubelets, NodeSpec, Readiness};
use flate2::read::GzDecoder;
use tempfile::TempDir;

use super::cross::path as program_path;
use super::package::PLUGIN;
use super::platform::Platform;
use crate::cargo::succeeds;
use crate::control_plane::ensure_built;
use crate::output::print;

const NODE: &str = "worker-1";

/// A node to fence: its last heartbeat is one hour old.
const UNREACHABLE: &str = "worker-2";

/// A library that every Rust program needs, and that older releases of wine do not have.
const REQUIRED_DLL: &str = "drive_c/windows/system32/bcryptprimitives.dll";

/// A script that ends when its child has started. The child runs longer.
const SCRIPT: &str = r#"child=$(dirname "$0")/child
(: > "$child"; sleep 5; echo survived) &
while [ ! -e "$child" ]; do :; done
echo began
"#;

/// A batch file for Windows that does the same as [`SCRIPT`].
const BATCH_FILE: &str = "@start /b cmd /c \"echo > %~dp0child& ping -n 6 127.0.0.1 > nul& echo survived\"\r\n\
    :wait\r\n@if not exist %~dp0child goto wait\r\n@echo began\r\n";

/// A real API server with nodes, and a directory for temporary files.
pub(crate) struct SmokeTest {
    _kubelets: Kubelets,
    plane: ControlPlane,
    directory: TempDir,
    required: Required,
}

/// The programs that must be run. If another one is not run, a warning says so.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Required {
    No,
    /// All except those for macOS, which only macOS can run.
    AllButMacOs,
    All,
}

impl Required {
    /// Warns that something was not tested, or fails if it is required.
    fn skip(self, platform: Platform, what: &str, obstacle: &str) -> Result<()> {
        let skipped = format!("{what} for {platform} was not run: {obstacle}");
        match self {
            Self::No => {}
            Self::AllButMacOs if platform.os() == "darwin" => {}
            Self::AllButMacOs | Self::All => bail!(skipped),
        }
        print(format_args!("warning: {skipped}"));
        Ok(())
    }
}

/// How to run a program of another platform.
struct Runner {
    /// The command line: the program itself, or an emulator with the program as its argument.
    command: Vec<PathBuf>,
    wine_prefix: Option<PathBuf>,
    /// Whether the plugin can run commands and hooks. Under qemu-user it cannot: there is no sub-reaper.
    can_start_commands: bool,
}

impl SmokeTest {
    /// Starts the server.
    pub(crate) fn start(required: Required) -> Result<Self> {
        ensure_built(&Binary::CONTROL_PLANE)?;
        let plane = ControlPlane::start()?;
        let kubelets = plane.kubelets(&[NODE, "worker-3", "worker-4"], &[])?;
        plane.kubectl(&["create", "namespace", "kube-node-maintenance"])?;
        let directory = tempfile::tempdir()?;
        Ok(Self {
            _kubelets: kubelets,
            plane,
            directory,
            required,
        })
    }

    /// Runs the plugin that was built for `platform`.
    ///
    /// # Errors
    /// If a command does not do what it should, or this machine can't run the plugin and it is required.
    pub(crate) fn run(&self, platform: Platform) -> Result<()> {
        self.run_program(&program_path(PLUGIN.program, platform), platform)
    }

    /// Runs the plugin in this archive of a release.
    ///
    /// # Errors
    /// As `run`, or if it is not an archive of the plugin.
    pub(crate) fn run_archive(&self, archive: &Path) -> Result<()> {
        let platform = PLUGIN
            .platform_of(archive)
            .with_context(|| format!("{} is no archive of the plugin", archive.display()))?;
        let target = self.directory.path().join("archive");
        let content = fs::File::open(archive)?;
        tar::Archive::new(GzDecoder::new(content)).unpack(&target)?;
        self.run_program(&target.join(platform.executable(PLUGIN.program)), platform)
    }

    /// Runs this plugin, built for `platform`.
    ///
    /// # Errors
    /// As `run`.
    pub(crate) fn run_program(&self, program: &Path, platform: Platform) -> Result<()> {
        let runner = match self.runner(program, platform)? {
            Ok(runner) => runner,
            Err(obstacle) => return self.required.skip(platform, "the plugin", obstacle),
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
            // binfmt_misc may run programs for another processor.
            can_start_commands: platform.os() != "linux" || platform == Platform::here(),
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
                    can_start_commands: false,
                });
                runner.ok_or("qemu-user is not installed")
            }
            Platform::WindowsAmd64 if installed(&"wine") => {
                let prefix = self.wine_prefix()?;
                let has_dll = prefix.join(REQUIRED_DLL).exists();
                let runner = has_dll.then(|| Runner {
                    command: vec!["wine".into(), program],
                    wine_prefix: Some(prefix),
                    can_start_commands: true,
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
        // The paths as the program sees them.
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
        if runner.can_start_commands {
            let shell: &[_] = match windows {
                true => &["cmd", "/c", "echo %MAINT_NODE%& exit 42"],
                false => &["sh", "-c", "echo $MAINT_NODE; exit 42"],
            };
            let with = [&["with", NODE, "--quiet", "--"], shell].concat();
            check(&with, from_list, 42, NODE)?;
            self.check_end_of_tree(runner, windows, from_list)?;
            let missing = ["with", NODE, "--", "no-such-program"];
            check(&missing, from_list, 127, "error: cannot run")?;
            self.plane.create_nodes(&[NodeSpec {
                name: UNREACHABLE.to_owned(),
                ready: Readiness::Unknown,
                heartbeat_age: Duration::from_secs(3600),
                ..NodeSpec::default()
            }])?;
            let hook: &[_] = match windows {
                true => &["cmd", "/c", "echo %MAINT_NODE% is off"],
                false => &["sh", "-c", "echo $MAINT_NODE is off"],
            };
            let fence = [&["fence", UNREACHABLE, "--timeout=0", "--"], hook].concat();
            check(&fence, from_list, 0, "worker-2 is off")?;
            self.plane.kubectl(&["delete", "node", UNREACHABLE])?;
            let heartbeat = ["delete", "lease", "-n", "kube-node-lease", UNREACHABLE];
            self.plane.kubectl(&heartbeat)?;
        } else {
            print(format_args!(
                "warning: could not run `with` or hooks of the plugin for {platform}: qemu-user has no sub-reaper"
            ));
        }
        check(&["status", NODE], from_list, 0, "Free")?;
        Ok(())
    }

    /// Checks that processes that a command leaves are ended with it. On Windows, the command is a batch file without
    /// the extension.
    fn check_end_of_tree(
        &self,
        runner: &Runner,
        windows: bool,
        variables: &[(&str, &str)],
    ) -> Result<()> {
        let directory = self.directory.path();
        let (script, child) = (directory.join("leave"), directory.join("child"));
        let path = script.to_string_lossy();
        let command = if windows {
            fs::write(script.with_extension("cmd"), BATCH_FILE)?;
            vec![format!("Z:{path}")]
        } else {
            fs::write(&script, SCRIPT)?;
            vec!["sh".to_owned(), path.into_owned()]
        };
        let mut arguments = vec!["with", NODE, "--quiet", "--"];
        arguments.extend(command.iter().map(String::as_str));
        // A process that survives would keep the pipes open, so its output would be read too.
        let printed = runner.check(&arguments, variables, 0, "began")?;
        fs::remove_file(child)?;
        ensure!(
            !printed.contains("survived"),
            "a process survived the end of its command:\n{printed}"
        );
        Ok(())
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

    /// Runs the program, which must end with `code` and print `expected`. Returns its complete output.
    fn check(
        &self,
        arguments: &[&str],
        variables: &[(&str, &str)],
        code: i32,
        expected: &str,
    ) -> Result<String> {
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
        Ok(printed.into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_must_run_is_not_skipped() {
        for (required, platform, skipped) in [
            (Required::No, Platform::WindowsAmd64, true),
            (Required::AllButMacOs, Platform::WindowsAmd64, false),
            (Required::AllButMacOs, Platform::DarwinArm64, true),
            (Required::All, Platform::DarwinArm64, false),
        ] {
            let outcome = required.skip(platform, "the plugin", "wine is not installed");
            assert_eq!(outcome.is_ok(), skipped, "{required:?} {platform}");
        }
    }
}
