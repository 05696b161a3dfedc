//! The path of a command in CONTRIBUTING.md, from `main` to its request: each function calls the next.

use std::fs;
use std::path::Path;

/// The line above the list.
const TITLE: &str = "How `kubectl maint acquire worker-1` gets to its request:";

/// The largest number of functions that a reader should have to follow.
const LONGEST: usize = 14;

/// The file and function of each step.
fn steps(page: &str) -> Vec<(String, String)> {
    let (_, list) = page.split_once(TITLE).expect("the walk");
    let lines = list.lines().skip_while(|line| line.is_empty());
    let steps = lines.take_while(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    steps
        .map(|line| {
            let mut words = line.split('`').skip(1).step_by(2).map(ToOwned::to_owned);
            let step = words.next().zip(words.next());
            step.unwrap_or_else(|| panic!("no file and function in {line}"))
        })
        .collect()
}

/// The body of the function of this name, such as `run` or `LockCommand::lock`.
fn body<'t>(text: &'t str, function: &str) -> Option<&'t str> {
    let (owner, name) = match function.rsplit_once("::") {
        Some((owner, name)) => (Some(owner), name),
        None => (None, function),
    };
    let text = match owner {
        Some(owner) => {
            let begins = |line: &str| {
                let is_owner = |word: &str| word == owner;
                line.starts_with("impl") && line.split(|c: char| !c.is_alphanumeric()).any(is_owner)
            };
            let line = text.lines().find(|line| begins(line))?;
            text.split_once(line)?.1
        }
        None => text,
    };
    let at = ["(", "<"]
        .iter()
        .filter_map(|end| text.find(&format!("fn {name}{end}")))
        .min()?;
    let start = at + text[at..].find(" {\n")?;
    let indent = text[..at].rfind('\n').map_or(0, |line| {
        text[line + 1..].chars().take_while(|c| *c == ' ').count()
    });
    let end = text[start..].find(&format!("\n{}}}\n", " ".repeat(indent)))?;
    Some(&text[start..start + end])
}

fn broken(steps: &[(String, String)], read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut broken = Vec::new();
    for (index, (file, function)) in steps.iter().enumerate() {
        let text = read(file);
        let Some(body) = text.as_ref().and_then(|text| body(text, function)) else {
            broken.push(format!("{file} has no function {function}"));
            continue;
        };
        if let Some((next_file, next)) = steps.get(index + 1) {
            let module = Path::new(next_file).file_stem().unwrap_or_default();
            let call = match next.rsplit_once("::") {
                Some((_, method)) => format!(".{method}("),
                None => format!("{}::{next}(", module.to_string_lossy()),
            };
            if !body.contains(&call) {
                broken.push(format!("{function} in {file} does not call {next}"));
            }
        }
    }
    broken
}

#[test]
fn each_function_of_the_walk_calls_the_next() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("CONTRIBUTING.md")).expect("the page");
    let steps = steps(&page);
    let ends = |at: Option<&(String, String)>| at.map(|(_, function)| function.clone());
    assert_eq!(ends(steps.first()).as_deref(), Some("main"));
    assert_eq!(ends(steps.last()).as_deref(), Some("Requests::call"));
    assert!(steps.len() <= LONGEST, "{} functions", steps.len());
    let broken = broken(&steps, |file| fs::read_to_string(root.join(file)).ok());
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn a_wrong_walk_is_found() {
    let page = format!("{TITLE}\n\n1. `a.rs`: `main`\n2. `b.rs`: `T::go`\n3. `c.rs`: `no`\n\nend");
    let read = |file: &str| match file {
        "a.rs" => Some("fn main() {\n    t.go();\n}\n".to_owned()),
        "b.rs" => Some("impl T<'_> {\n    fn go(\n    ) {\n        b();\n    }\n}\n".to_owned()),
        _ => None,
    };
    let found = broken(&steps(&page), read);
    assert_eq!(
        found,
        ["T::go in b.rs does not call no", "c.rs has no function no"]
    );
}
