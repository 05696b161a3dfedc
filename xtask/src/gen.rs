//! `cargo xtask gen`: generates files from the definitions of the arguments and output types, and the picture in the
//! README from a run.

mod svg;
mod two_terminals;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use control_plane::target_dir;

use crate::cargo::build_like_tests;
use crate::output::print;

/// Generate completions/, docs/cli.md, docs/schema/ and docs/two-terminals.svg from the program
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Change nothing; fail if a file is out of date
    #[arg(long)]
    pub(crate) check: bool,

    /// Run the programs in target/debug as they are, without building them
    #[arg(long)]
    pub(crate) built: bool,
}

const PICTURE: &str = "docs/two-terminals.svg";

const PLUGIN: &str = "kubectl-maint";
const ELECTOR: &str = "lease-elect";

/// Each file, with the program and the arguments that print it.
const FILES: [(&str, &str, &[&str]); 9] = [
    ("docs/cli.md", PLUGIN, &["reference"]),
    ("docs/schema/v2.json", PLUGIN, &["reference", "--schema"]),
    ("completions/_kubectl-maint", PLUGIN, &["completion", "zsh"]),
    (
        "completions/kubectl-maint.bash",
        PLUGIN,
        &["completion", "bash"],
    ),
    (
        "completions/kubectl-maint.fish",
        PLUGIN,
        &["completion", "fish"],
    ),
    (
        "completions/kubectl-maint.ps1",
        PLUGIN,
        &["completion", "powershell"],
    ),
    ("completions/_lease-elect", ELECTOR, &["__reference", "zsh"]),
    (
        "completions/lease-elect.bash",
        ELECTOR,
        &["__reference", "bash"],
    ),
    (
        "completions/lease-elect.fish",
        ELECTOR,
        &["__reference", "fish"],
    ),
];

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        if !self.built {
            build_like_tests(&[PLUGIN, ELECTOR])?;
        }
        let mut made = vec![(PICTURE, two_terminals::render_svg()?.into_bytes())];
        for (path, program, arguments) in FILES {
            made.push((path, output(program, arguments)?));
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut is_current = true;
        for (path, content) in made {
            let file = root.join(path);
            if fs::read(&file).is_ok_and(|found| found == content) {
                continue;
            }
            is_current = false;
            print(path);
            if !self.check {
                fs::write(&file, content).with_context(|| format!("failed to write {path}"))?;
            }
        }
        ensure!(
            is_current || !self.check,
            "the files above are out of date: run `cargo xtask gen`"
        );
        Ok(())
    }
}

/// The output of a program in an empty environment, because the files must not depend on the machine.
fn output(program: &str, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(target_dir().join("debug").join(program))
        .args(arguments)
        .env_clear()
        .output()
        .with_context(|| format!("failed to run {program}"))?;
    ensure!(
        output.status.success(),
        "`{program} {}` failed: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.stdout)
}
