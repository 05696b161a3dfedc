//! `cargo xtask gen`: generates files from the definitions of the arguments and output types, and the picture in the
//! README from a run.

mod svg;
mod two_terminals;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use control_plane::target_dir;

use crate::cargo::build_like_tests;
use crate::output::print;

/// Generate completions/, docs/cli.md, docs/man/, docs/schema/ and docs/two-terminals.svg from the program
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Change nothing; fail if a file is out of date
    #[arg(long)]
    pub(crate) check: bool,

    /// Run the programs in target/debug as they are, without building them
    #[arg(long)]
    pub(crate) built: bool,
}

/// The directories in which every file is generated.
const DIRECTORIES: [&str; 2] = ["completions", "docs/man"];
const REFERENCE: &str = "docs/cli.md";
const PICTURE: &str = "docs/two-terminals.svg";
const SCHEMA: &str = "docs/schema/v2.json";
const SCRIPTS: [(&str, &str); 4] = [
    ("bash", "completions/kubectl-maint.bash"),
    ("zsh", "completions/_kubectl-maint"),
    ("fish", "completions/kubectl-maint.fish"),
    ("powershell", "completions/kubectl-maint.ps1"),
];

/// The second program.
const ELECTOR: &str = "lease-elect";
const OF_ELECTOR: [(&str, &str); 5] = [
    ("man", "docs/man/lease-elect.1"),
    ("bash", "completions/lease-elect.bash"),
    ("zsh", "completions/_lease-elect"),
    ("fish", "completions/lease-elect.fish"),
    ("powershell", "completions/lease-elect.ps1"),
];

/// File contents by path, relative to the root of the workspace.
type Files = BTreeMap<PathBuf, Vec<u8>>;

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        if !self.built {
            build_like_tests(&["kubectl-maint", ELECTOR])?;
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let programs = target_dir().join("debug");
        let mut made = make(&programs.join("kubectl-maint"))?;
        made.extend(make_of_elector(&programs.join(ELECTOR))?);
        made.insert(PICTURE.into(), two_terminals::render_svg()?.into_bytes());
        let found = find(&root)?;
        let differing = differences(&made, &found);
        if differing.is_empty() {
            return Ok(());
        }
        for path in &differing {
            print(path.display());
        }
        if self.check {
            bail!("the files above are out of date: run `cargo xtask gen`");
        }
        for path in differing {
            let file = root.join(path);
            match made.get(path) {
                None => fs::remove_file(file)?,
                Some(content) => {
                    fs::create_dir_all(file.parent().unwrap_or(&root))?;
                    fs::write(file, content)?;
                }
            }
        }
        Ok(())
    }
}

/// The files that the plugin generates.
fn make(plugin: &Path) -> Result<Files> {
    let mut files = Files::new();
    files.insert(REFERENCE.into(), output(plugin, &["reference"])?);
    files.insert(SCHEMA.into(), output(plugin, &["reference", "--schema"])?);
    for (shell, path) in SCRIPTS {
        files.insert(path.into(), output(plugin, &["completion", shell])?);
    }
    let pages = target_dir().join("man");
    if pages.exists() {
        fs::remove_dir_all(&pages)?;
    }
    let directory = pages
        .to_str()
        .context("the target directory is not UTF-8")?;
    output(plugin, &["reference", "--man", directory])?;
    for (path, content) in files_in(&pages)? {
        files.insert(Path::new("docs/man").join(path), content);
    }
    Ok(files)
}

/// The files that the second program generates.
fn make_of_elector(elector: &Path) -> Result<Files> {
    let each = OF_ELECTOR.iter().map(|(what, path)| {
        let content = output(elector, &["__reference", what])?;
        Ok((path.into(), content))
    });
    each.collect()
}

/// The output of a program in an empty environment, because the files must not depend on the machine.
fn output(program: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(program)
        .args(arguments)
        .env_clear()
        .output()
        .with_context(|| format!("failed to run {}", program.display()))?;
    ensure!(
        output.status.success(),
        "`{} {}` failed: {}",
        program.display(),
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.stdout)
}

/// The existing files.
fn find(root: &Path) -> Result<Files> {
    let mut files = Files::new();
    for file in [REFERENCE, PICTURE, SCHEMA] {
        if let Ok(content) = fs::read(root.join(file)) {
            files.insert(file.into(), content);
        }
    }
    for directory in DIRECTORIES {
        if root.join(directory).exists() {
            for (name, content) in files_in(&root.join(directory))? {
                files.insert(Path::new(directory).join(name), content);
            }
        }
    }
    Ok(files)
}

fn files_in(directory: &Path) -> Result<Files> {
    let mut files = Files::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        files.insert(entry.file_name().into(), fs::read(entry.path())?);
    }
    Ok(files)
}

/// The paths that are missing, outdated or no longer generated.
fn differences<'a>(made: &'a Files, found: &'a Files) -> Vec<&'a PathBuf> {
    let changed = made
        .iter()
        .filter(|(path, content)| found.get(*path) != Some(content))
        .map(|(path, _)| path);
    let stale = found.keys().filter(|path| !made.contains_key(*path));
    changed.chain(stale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: &[(&str, &str)]) -> Files {
        files
            .iter()
            .map(|(path, content)| (path.into(), content.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn missing_stale_and_superfluous_files_differ() {
        let made = files(&[("same", "1"), ("stale", "2"), ("missing", "3")]);
        let found = files(&[("same", "1"), ("stale", "0"), ("superfluous", "4")]);
        assert_eq!(
            differences(&made, &found),
            [
                Path::new("missing"),
                Path::new("stale"),
                Path::new("superfluous")
            ]
        );
        assert!(differences(&made, &made).is_empty());
    }
}
