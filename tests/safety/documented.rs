//! docs/pod-safety.md: a test on the real server expects every finding in its table of checks.

use std::fs;
use std::path::Path;

/// The levels as they are written in the table, in the report, and in its JSON.
const LEVELS: [(&str, &str, &str); 5] = [
    ("BLOCKER", "BLOCKER", "Blocker"),
    ("RISK", "RISK", "Risk"),
    ("`unread`", "unread", "Unread"),
    ("info", "info", "Info"),
    ("ok", "ok", "Ok"),
];

/// The source of these tests, without this file.
fn tests(directory: &Path) -> String {
    let entries = fs::read_dir(directory).expect("a directory");
    let text = entries.map(|entry| {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => tests(&path),
            false if path.ends_with("documented.rs") => String::new(),
            false => fs::read_to_string(path).expect("text"),
        }
    });
    text.collect()
}

#[test]
fn every_documented_finding_is_expected_by_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/pod-safety.md")).expect("the page");
    let (_, table) = page.split_once("## The checks\n").expect("the table");
    let (table, _) = table.split_once("\n###").expect("its end");
    let tests = tests(&root.join("tests/safety"));
    let mut documented = Vec::new();
    let mut missing = Vec::new();
    for row in table.lines() {
        let cells: Vec<&str> = row.split('|').collect();
        let Some(id) = cells.get(1).and_then(|cell| cell.split('`').nth(1)) else {
            continue;
        };
        documented.push(id.to_owned());
        for (in_table, in_report, in_data) in LEVELS {
            let expected = [
                format!("\"{id}\", Some(\"{in_data}\")"),
                format!("\"{id}\", \"{in_data}\""),
                format!("{in_report:9}{id} "),
            ];
            if cells[2].contains(in_table) && !expected.iter().any(|text| tests.contains(text)) {
                missing.push(format!("{id}: {in_table}"));
            }
        }
    }
    assert!(missing.is_empty(), "no test expects {missing:?}");
    let checks = pod_safety::checks::RISKS.iter();
    let checks = checks.chain(&pod_safety::checks::BLOCKERS);
    let checks = checks.chain(&pod_safety::checks::FINAL);
    let mut checks = checks.chain(&pod_safety::checks::INFOS);
    let unread = pod_safety::checks::UNREAD;
    let undocumented = checks.find(|id| **id != unread && !documented.iter().any(|one| one == *id));
    assert_eq!(undocumented, None, "it is in no row");
}
