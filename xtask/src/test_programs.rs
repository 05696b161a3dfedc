//! Runs the test programs that cargo built, several at a time, because most of them mainly wait for the servers that
//! they started.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use crate::cargo::cargo;
use crate::output::{Progress, print, result};

/// How many programs run at the same time.
const AT_ONCE: usize = 3;

/// The programs that take minutes. They start first, because the last one would run alone.
const LONGEST: [&str; 8] = [
    "fencing", "cli", "model", "policy", "elect", "chaos", "cluster", "safety",
];

/// A test program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// The package and the test, such as `kubectl-maint/cli`.
    name: String,
    executable: PathBuf,
    /// The directory of its package.
    directory: PathBuf,
}

/// A message of cargo about something that it built. Only those about test programs have all these fields.
#[derive(Deserialize)]
struct Message {
    executable: PathBuf,
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// The test programs of `build`, with those first that take long because they test whole programs.
///
/// # Errors
/// If the build fails, or builds no test program.
pub(crate) fn built(build: &mut Command) -> Result<Vec<Program>> {
    build
        .arg("--message-format=json-render-diagnostics")
        .stdout(Stdio::piped());
    let output = build
        .spawn()
        .context("failed to run cargo")?
        .wait_with_output()?;
    ensure!(output.status.success(), "the tests do not compile");
    let programs = parse(&String::from_utf8(output.stdout)?);
    ensure!(!programs.is_empty(), "cargo built no tests");
    Ok(programs)
}

fn parse(messages: &str) -> Vec<Program> {
    let messages = messages.lines();
    let mut built: Vec<Message> = messages
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|message: &Message| message.profile.test)
        .collect();
    built.sort_by_key(|message| {
        let Target { name, kind } = &message.target;
        let is_unit = !kind.iter().any(|kind| kind == "test");
        let longest = LONGEST.iter().position(|longest| name == longest);
        (is_unit, longest.unwrap_or(LONGEST.len()))
    });
    let program = |message: Message| {
        let directory = message.manifest_path.parent()?.to_owned();
        let package = directory.file_name()?.to_string_lossy().into_owned();
        Some(Program {
            name: format!("{package}/{}", message.target.name),
            executable: message.executable,
            directory,
        })
    };
    built.into_iter().filter_map(program).collect()
}

/// Runs all programs. Prints the whole output of each when it has ended.
///
/// # Errors
/// If a program fails. The error is returned after all have ended.
pub(crate) fn run(programs: Vec<Program>, prepare: impl Fn(&mut Command) + Sync) -> Result<()> {
    let count = programs.len();
    let left = Mutex::new(VecDeque::from(programs));
    let failed = Mutex::new(Vec::new());
    let progress = Progress::start(format_args!("running {count} test programs"));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(program) = { lock(&left).pop_front() } {
                    let started = Instant::now();
                    let ran = program.run(&prepare);
                    let took = started.elapsed().as_secs();
                    match ran {
                        Ok(()) => print(format_args!("{}: passed in {took} s", program.name)),
                        Err(error) => {
                            print(format_args!("{}: {error:#}, after {took} s", program.name));
                            lock(&failed).push(program.name);
                        }
                    }
                    if let Some(progress) = &progress {
                        let waiting = lock(&left).len();
                        progress.set_message(format_args!(
                            "ran {} of {count} test programs",
                            count - waiting
                        ));
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap_or_default();
    failed.sort();
    match failed.is_empty() {
        true => Ok(()),
        false => bail!("failed: {}", failed.join(", ")),
    }
}

impl Program {
    fn run(&self, prepare: impl Fn(&mut Command)) -> Result<()> {
        let mut command = Command::new(&self.executable);
        command
            .current_dir(&self.directory)
            .env("CARGO", cargo(&[]).get_program())
            .env("CARGO_MANIFEST_DIR", &self.directory);
        prepare(&mut command);
        let output = command.output()?;
        let [out, err] =
            [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        result(format_args!("{}: {}{}", self.name, err, out.trim_end()));
        ensure!(output.status.success(), "{}", output.status);
        Ok(())
    }
}

/// If a thread panicked, the whole command ends.
fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn message(name: &str, kind: &str, is_test: bool) -> String {
        serde_json::json!({
            "reason": "compiler-artifact",
            "manifest_path": "/work/plugin/Cargo.toml",
            "target": {"name": name, "kind": [kind]},
            "profile": {"test": is_test},
            "executable": format!("/work/target/{name}"),
        })
        .to_string()
    }

    #[test]
    fn the_longest_programs_come_first_and_unit_tests_last() {
        let messages = [
            message("units", "lib", true),
            message("without-tests", "bin", false),
            message("quick", "test", true),
            message("cli", "test", true),
            message("fencing", "test", true),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let programs = parse(&messages.join("\n"));
        let names: Vec<&str> = programs
            .iter()
            .map(|program| program.name.as_str())
            .collect();
        let longest = ["plugin/fencing", "plugin/cli"];
        assert_eq!(names[..2], longest);
        assert_eq!(names[2..], ["plugin/quick", "plugin/units"]);
        assert_eq!(programs[0].directory, Path::new("/work/plugin"));
    }

    #[test]
    fn all_are_run_although_one_fails() {
        let directory = tempfile::tempdir().unwrap();
        let program = |name: &str| Program {
            name: name.to_owned(),
            executable: "/bin/sh".into(),
            directory: directory.path().to_owned(),
        };
        let failed = run(
            vec![program("one"), program("two"), program("three")],
            |command| {
                command.args(["-c", "mktemp -p .; exit 1"]);
            },
        );
        let error = failed.unwrap_err().to_string();
        assert_eq!(error, "failed: one, three, two");
        assert_eq!(directory.path().read_dir().unwrap().count(), 3);
    }
}
