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

/// Each file, with the arguments of the plugin that print it.
const FILES: [(&str, &[&str]); 6] = [
    ("docs/cli.md", &["reference"]),
    ("docs/schema/v2.json", &["reference", "--schema"]),
    ("completions/_kubectl-maint", &["completion", "zsh"]),
    ("completions/kubectl-maint.bash", &["completion", "bash"]),
    ("completions/kubectl-maint.fish", &["completion", "fish"]),
    (
        "completions/kubectl-maint.ps1",
        &["completion", "powershell"],
    ),
];

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        if !self.built {
            build_like_tests(&[PLUGIN])?;
        }
        let mut made = vec![(PICTURE, two_terminals::render_svg()?.into_bytes())];
        for (path, arguments) in FILES {
            made.push((path, output(arguments)?));
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

/// The output of the plugin in an empty environment, because the files must not depend on the machine.
fn output(arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(target_dir().join("debug").join(PLUGIN))
        .args(arguments)
        .env_clear()
        .output()
        .with_context(|| format!("failed to run {PLUGIN}"))?;
    ensure!(
        output.status.success(),
        "`{PLUGIN} {}` failed: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.stdout)
}
