//! `cargo xtask smoke-test`: runs a built plugin on a real API server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use control_plane::{Binary, ControlPlane, Kubelets, NodeSpec, Readiness};
use tempfile::TempDir;

use crate::cargo::succeeds;
use crate::control_plane::ensure_built;
use crate::output::print;

const NODE: &str = "worker-1";

/// A node to fence: its last heartbeat is one hour old.
const UNREACHABLE: &str = "worker-2";

/// A script that ends when its child has started. The child runs longer.
const SCRIPT: &str = r#"child=$(dirname "$0")/child
(: > "$child"; sleep 5; echo survived) &
while [ ! -e "$child" ]; do :; done
echo began
"#;

/// A batch file for Windows that does the same as [`SCRIPT`].
const BATCH_FILE: &str = "@start /b cmd /c \"echo > %~dp0child& ping -n 6 127.0.0.1 > nul& echo survived\"\r\n\
    :wait\r\n@if not exist %~dp0child goto wait\r\n@echo began\r\n";

/// Run a built plugin on a real API server
///
/// Runs the commands that depend on the system. A plugin for Windows runs under wine 8.13 or newer.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The plugin. The name of one for Windows ends in .exe
    plugin: PathBuf,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        run(&self.plugin)
    }
}

/// Runs this plugin.
///
/// # Errors
/// If a command does not do what it should, or this machine can't run the plugin.
pub(crate) fn run(plugin: &Path) -> Result<()> {
    SmokeTest::start(plugin)?.check_commands()?;
    print(format_args!("{} passed its smoke test", plugin.display()));
    Ok(())
}

/// A plugin, a real API server with nodes, and a directory for temporary files.
struct SmokeTest {
    plugin: PathBuf,
    is_windows: bool,
    _kubelets: Kubelets,
    plane: ControlPlane,
    directory: TempDir,
}

impl SmokeTest {
    /// Starts the server.
    fn start(plugin: &Path) -> Result<Self> {
        ensure_built(&Binary::CONTROL_PLANE)?;
        let plane = ControlPlane::start()?;
        let kubelets = plane.kubelets(&[NODE, "worker-3", "worker-4"], &[])?;
        plane.kubectl(&["create", "namespace", "kube-node-maintenance"])?;
        let test = Self {
            plugin: plugin.canonicalize()?,
            is_windows: plugin
                .extension()
                .is_some_and(|extension| extension == "exe"),
            _kubelets: kubelets,
            plane,
            directory: tempfile::tempdir()?,
        };
        test.write_kubeconfig(&test.home())?;
        if test.is_windows {
            test.prepare_wine()?;
        }
        Ok(test)
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    fn wine_prefix(&self) -> PathBuf {
        self.directory.path().join("wine")
    }

    /// Creates a wine prefix, with the kubeconfig in each home directory.
    fn prepare_wine(&self) -> Result<()> {
        let prefix = self.wine_prefix();
        let mut boot = Command::new("wine");
        boot.args(["wineboot", "--init"]).env("WINEPREFIX", &prefix);
        ensure!(succeeds(&mut boot), "wine could not create a prefix");
        for entry in fs::read_dir(prefix.join("drive_c/users"))? {
            let home = entry?.path();
            if !home.ends_with("Public") {
                self.write_kubeconfig(&home)?;
            }
        }
        Ok(())
    }

    /// Writes the kubeconfig into `home`.
    fn write_kubeconfig(&self, home: &Path) -> Result<()> {
        let directory = home.join(".kube");
        fs::create_dir_all(&directory)?;
        fs::copy(self.plane.admin_kubeconfig(), directory.join("config"))?;
        Ok(())
    }

    fn check_commands(&self) -> Result<()> {
        let missing = self.directory.path().join("missing");
        // The paths as the program sees them.
        let (drive, separator) = if self.is_windows {
            ("Z:", ";")
        } else {
            ("", ":")
        };
        let kubeconfig = [missing.as_path(), self.plane.admin_kubeconfig()]
            .map(|path| format!("{drive}{}", path.display()))
            .join(separator);
        let from_list = ("KUBECONFIG", kubeconfig.as_str());
        let home = self.home();
        let from_home = ("HOME", &*home.to_string_lossy());
        let check = |arguments: &[&str], code, expected: &str| {
            self.check(arguments, from_list, code, expected)
        };
        check(&["version"], 0, env!("CARGO_PKG_VERSION"))?;
        check(&["acquire", "--help"], 0, "Usage:")?;
        let acquire = ["acquire", NODE, "--holder", "smoke-test", "-m", "a test"];
        check(&acquire, 0, "acquired")?;
        self.check(&["status", NODE], from_home, 0, "smoke-test")?;
        check(&["acquire", NODE, "--holder", "bob"], 3, "smoke-test")?;
        let release = ["release", NODE, "--holder", "smoke-test"];
        check(&release, 0, "released")?;
        let shell: &[_] = match self.is_windows {
            true => &["cmd", "/c", "echo %MAINT_NODE%& exit 42"],
            false => &["sh", "-c", "echo $MAINT_NODE; exit 42"],
        };
        check(
            &[&["with", NODE, "--quiet", "--"], shell].concat(),
            42,
            NODE,
        )?;
        self.check_end_of_tree(from_list)?;
        let missing = ["with", NODE, "--", "no-such-program"];
        check(&missing, 127, "error: cannot run")?;
        self.plane.create_nodes(&[NodeSpec {
            name: UNREACHABLE.to_owned(),
            ready: Readiness::Unknown,
            heartbeat_age: Duration::from_secs(3600),
            ..NodeSpec::default()
        }])?;
        let hook: &[_] = match self.is_windows {
            true => &["cmd", "/c", "echo %MAINT_NODE% is off"],
            false => &["sh", "-c", "echo $MAINT_NODE is off"],
        };
        let fence = [&["fence", UNREACHABLE, "--timeout=0", "--"], hook].concat();
        check(&fence, 0, "worker-2 is off")?;
        check(&["status", NODE], 0, "Free")?;
        Ok(())
    }

    /// Checks that processes that a command leaves are ended with it. On Windows, the command is a batch file without
    /// the extension.
    fn check_end_of_tree(&self, variable: (&str, &str)) -> Result<()> {
        let script = self.directory.path().join("leave");
        let path = script.to_string_lossy();
        let on_windows = format!("Z:{path}");
        let command: &[&str] = if self.is_windows {
            fs::write(script.with_extension("cmd"), BATCH_FILE)?;
            &[&on_windows]
        } else {
            fs::write(&script, SCRIPT)?;
            &["sh", &path]
        };
        let arguments = [&["with", NODE, "--quiet", "--"], command].concat();
        // A process that survives would keep the pipes open, so its output would be read too.
        let printed = self.check(&arguments, variable, 0, "began")?;
        ensure!(
            !printed.contains("survived"),
            "a process survived the end of its command:\n{printed}"
        );
        Ok(())
    }

    /// Runs the plugin, which must end with `code` and print `expected`. Returns its complete output.
    fn check(
        &self,
        arguments: &[&str],
        (variable, value): (&str, &str),
        code: i32,
        expected: &str,
    ) -> Result<String> {
        let mut command = match self.is_windows {
            false => Command::new(&self.plugin),
            true => {
                let mut wine = Command::new("wine");
                wine.arg(&self.plugin)
                    .env("WINEPREFIX", self.wine_prefix())
                    .env("WINEDEBUG", "-all");
                wine
            }
        };
        command.args(arguments).env_remove("KUBECONFIG");
        let output = command.env(variable, value).output()?;
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
