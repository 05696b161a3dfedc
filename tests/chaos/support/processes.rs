//! The processes of a scenario, found by a variable of their environment, which everything that a
//! contender starts inherits, wherever it moves to.

use std::time::{Duration, Instant};

use super::TIME_LIMIT;

/// The variable.
pub(super) const MARK: &str = "CHAOS_SCENARIO";

/// The processes that have it with this value, and what they are.
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

/// Fails where none is seen while a command is at work: what isn't seen isn't missed either.
#[track_caller]
pub(super) fn are_seen(scenario: &str) {
    assert!(!alive(scenario).is_empty(), "no process of {scenario}");
}

/// Waits until none is left, as a killed contender's soon must be, and fails where one stays.
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
