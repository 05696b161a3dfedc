//! The rules for every runbook.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use crate::test_machine::RUNBOOKS;

fn runbooks() -> Vec<PathBuf> {
    let files = fs::read_dir(RUNBOOKS).expect("a directory");
    let paths = files.map(|file| file.expect("a file").path());
    paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "sh"))
        .collect()
}

#[test]
fn every_runbook_ends_at_the_first_failure_and_says_its_exit_codes() {
    assert!(runbooks().len() >= 5);
    for path in runbooks() {
        let shown = path.display();
        let text = fs::read_to_string(&path).expect("text");
        assert!(text.starts_with("#!/usr/bin/env bash\n"), "{shown}");
        assert!(text.contains("\nset -euo pipefail\n"), "{shown}");
        assert!(text.contains("\n# Exit codes: "), "{shown}");
        let mode = path.metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "{shown}");
        let parsed = Command::new("bash").arg("-n").arg(&path).status();
        assert!(parsed.expect("bash is there").success(), "{shown}");
    }
}

#[test]
fn the_readme_names_every_runbook() {
    let readme = fs::read_to_string(format!("{RUNBOOKS}/README.md")).expect("text");
    for path in runbooks() {
        let name = path.file_name().expect("a name").to_string_lossy();
        assert!(readme.contains(&*format!("[`{name}`]({name})")), "{name}");
    }
}
