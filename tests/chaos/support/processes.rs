//! The processes of a scenario. They are found by an environment variable, which every process that
//! a contender starts inherits.

use std::time::{Duration, Instant};

use super::TIME_LIMIT;

/// The name of that variable.
pub(super) const MARK: &str = "CHAOS_SCENARIO";

/// The running processes whose variable has this value, with their command lines.
fn alive(scenario: &str) -> Vec<String> {
    let mark = format!("{MARK}={scenario}");
    let processes = std::fs::read_dir("/proc").expect("Linux has it");
    let mut found = Vec::new();
    for process in processes.flatten() {
        let read = |name: &str| std::fs::read(process.path().join(name)).unwrap_or_default();
        let environment = read("environ");
        let mut variables = environment.split(|byte| *byte == 0);
        if variables.any(|variable| variable == mark.as_bytes()) {
            let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
            let number = process.file_name().to_string_lossy().into_owned();
            found.push(format!("{number} {line}"));
        }
    }
    found
}

/// Fails if no process is found while a command is running. Otherwise, a later check would prove
/// nothing.
#[track_caller]
pub(super) fn are_seen(scenario: &str) {
    assert!(!alive(scenario).is_empty(), "no process of {scenario}");
}

/// Waits until no process is left, and fails if one stays. A killed contender's processes must end
/// soon.
#[track_caller]
pub(super) fn all_end(scenario: &str) {
    let deadline = Instant::now() + TIME_LIMIT;
    loop {
        let left = alive(scenario);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "still there: {left:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
