//! The layers of `src/`: imports point downwards only, in the order that CONTRIBUTING.md shows, and files
//! don't import each other in circles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The layers, from the top down. What shares a layer may import each other.
const LAYERS: [&[&str]; 11] = [
    &["main", "app", "usage_errors"],
    &["completion"],
    &["commands"],
    &["run"],
    &["args"],
    &["ui"],
    &["output"],
    &["words"],
    &["exit"],
    &["error"],
    &["signals", "text", "platform"],
];

fn layer(module: &str) -> usize {
    let found = LAYERS.iter().position(|layer| layer.contains(&module));
    found.unwrap_or_else(|| panic!("src/ has {module}, which is in no layer"))
}

fn files(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// `text` without its tests.
fn code(text: &str) -> &str {
    let (code, _) = text
        .split_once("#[cfg(test)]\nmod tests {")
        .unwrap_or((text, ""));
    code
}

/// The top-level modules that `text` names, its tests left out.
fn imports(text: &str) -> BTreeSet<&str> {
    let code = code(text);
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let paths = lines.flat_map(|line| line.split("crate::").skip(1));
    paths
        .map(|path| {
            path.split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
        })
        .map(Option::unwrap_or_default)
        .filter(|module| !module.is_empty())
        .collect()
}

#[test]
fn imports_point_downwards() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&src, &mut all);
    let mut upwards = Vec::new();
    let mut seen = 0;
    for file in all {
        let path = file.strip_prefix(&src).expect("below src");
        if path.file_name().is_some_and(|name| name == "tests.rs") {
            continue;
        }
        let top = path
            .iter()
            .next()
            .and_then(|top| top.to_str())
            .expect("text");
        let from = top.trim_end_matches(".rs");
        for to in imports(&fs::read_to_string(&file).expect("text")) {
            seen += 1;
            if layer(to) < layer(from) {
                upwards.push(format!("src/{} imports crate::{to}", path.display()));
            }
        }
    }
    assert!(seen > 300, "only {seen} imports were found");
    assert!(upwards.is_empty(), "{}", upwards.join("\n"));
}

#[test]
fn an_import_is_found_in_any_form() {
    let text = "use crate::run::{a, b};\n// use crate::words;\nfn f() { crate::ui::g() }\n\
                #[cfg(test)]\nmod tests {\n    use crate::app::Cli;\n}\n";
    assert_eq!(imports(text), BTreeSet::from(["run", "ui"]));
}

/// A module by its path below the crate, such as `["words", "time"]`.
type Module = Vec<String>;

/// The module that a file below `src/` holds.
fn module(file: &Path) -> Module {
    let path = file.with_extension("");
    let names = path
        .iter()
        .map(|name| name.to_str().expect("text").to_owned());
    let mut names: Module = names.collect();
    if names.last().is_some_and(|name| name == "mod") {
        names.pop();
    }
    names
}

/// The paths in a `use` item, which may have braces.
fn expand(item: &str) -> Vec<String> {
    let Some((prefix, rest)) = item.split_once('{') else {
        return vec![item.to_owned()];
    };
    let (mut paths, mut depth, mut start) = (Vec::new(), 0, 0);
    // A message may have the word `use` and a brace, too.
    let Some(inner) = rest.strip_suffix('}') else {
        return Vec::new();
    };
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let paths_of = expand(&inner[start..at]).into_iter();
                paths.extend(paths_of.map(|path| format!("{prefix}{path}")));
                start = at + 1;
            }
            _ => {}
        }
    }
    paths
}

/// The modules that `text`, the file of `from`, imports.
fn imported(from: &Module, text: &str, modules: &BTreeSet<Module>) -> BTreeSet<Module> {
    let lines = code(text).lines().map(str::trim);
    let lines = lines.filter(|line| !line.starts_with("//"));
    let text: String = lines.collect();
    let items = text.split("use ").skip(1);
    let items = items.filter_map(|item| Some(item.split_once(';')?.0));
    let paths = items.flat_map(|item| expand(&item.replace(' ', "")));
    let found = paths.filter_map(|path| {
        let mut names: Vec<&str> = path.split("::").collect();
        let mut full = match names[0] {
            "crate" => Module::new(),
            "self" | "super" => from.clone(),
            _ => return None,
        };
        while matches!(names.first(), Some(&"crate" | &"self" | &"super")) {
            if names.remove(0) == "super" {
                full.pop();
            }
        }
        full.extend(names.into_iter().map(str::to_owned));
        while !full.is_empty() && !modules.contains(&full) {
            full.pop();
        }
        Some(full)
    });
    found.filter(|to| !to.is_empty() && to != from).collect()
}

/// The modules that are part of a circle, or lie between two.
fn circles(mut imports: BTreeMap<Module, BTreeSet<Module>>) -> BTreeMap<Module, BTreeSet<Module>> {
    loop {
        let before = imports.len();
        let known: BTreeSet<Module> = imports.keys().cloned().collect();
        for to in imports.values_mut() {
            to.retain(|to| known.contains(to));
        }
        imports.retain(|_, to| !to.is_empty());
        if imports.len() == before {
            return imports;
        }
    }
}

/// The files below `src/`, by module.
fn texts() -> BTreeMap<Module, String> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&src, &mut all);
    all.iter()
        .filter(|file| file.file_name().is_some_and(|name| name != "tests.rs"))
        .map(|file| {
            let below = file.strip_prefix(&src).expect("below src");
            (module(below), fs::read_to_string(file).expect("text"))
        })
        .collect()
}

/// A folder's own file may share types with the files inside. The commands' folders are not checked yet.
#[test]
fn files_below_the_commands_import_no_circles() {
    let mut texts = texts();
    texts.retain(|module, _| module[0] != "commands");
    let modules = texts.keys().cloned().collect();
    let imports: BTreeMap<Module, BTreeSet<Module>> = texts
        .iter()
        .map(|(from, text)| {
            let mut to = imported(from, text, &modules);
            to.retain(|to| !to.starts_with(from) && !from.starts_with(to));
            (from.clone(), to)
        })
        .collect();
    let seen: usize = imports.values().map(BTreeSet::len).sum();
    assert!(seen > 250, "only {seen} imports were found");
    let circles = circles(imports);
    assert!(circles.is_empty(), "{circles:#?}");
}

/// The folders with a file that still imports from the folder's own file.
const NOT_CLEAN: [&str; 1] = ["commands/force_delete"];

/// Files of a folder share their types in one of these files, so imports never point upwards.
#[test]
fn a_folders_files_do_not_import_from_its_own_file() {
    let texts = texts();
    let modules = texts.keys().cloned().collect();
    let mut found = BTreeSet::new();
    for (from, text) in &texts {
        let parent = from[..from.len() - 1].to_vec();
        if imported(from, text, &modules).contains(&parent) {
            found.insert(parent.join("/"));
        }
    }
    let known: BTreeSet<String> = NOT_CLEAN.map(ToOwned::to_owned).into();
    let new: Vec<&String> = found.difference(&known).collect();
    assert!(new.is_empty(), "move what is shared down, in {new:?}");
    let imports = texts
        .keys()
        .map(|from| (from, imported(from, &texts[from], &modules)));
    let seen = imports.filter(|(_, imports)| !imports.is_empty()).count();
    assert!(seen > 100, "imports were found in {seen} files only");
}

#[test]
fn commands_do_not_import_each_other() {
    let mut texts = texts();
    texts.retain(|module, _| module[0] == "commands" && module.len() > 1);
    assert!(texts.len() > 30, "only {} files were found", texts.len());
    let modules = texts.keys().cloned().collect();
    let wrong = texts.iter().flat_map(|(from, text)| {
        let imported = imported(from, text, &modules).into_iter();
        let of_others = imported.filter(|to| from[1] != to[1]);
        of_others.map(move |to| format!("src/{} imports {}", from.join("/"), to.join("::")))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_circle_is_found() {
    let module = |name: &str| vec![name.to_owned()];
    let modules = BTreeSet::from([module("a"), module("b"), module("c")]);
    let imports = |name: &str, text: &str| (module(name), imported(&module(name), text, &modules));
    let circle = circles(BTreeMap::from([
        imports("a", "use crate::{b::{B, X}, c};\n"),
        imports("b", "pub(crate) use super::a::A;\n"),
        imports("c", "#[cfg(test)]\nmod tests {\n    use super::a::A;\n}\n"),
    ]));
    let circle: Vec<&Module> = circle.keys().collect();
    assert_eq!(circle, [&module("a"), &module("b")]);
}

/// Failures are data, without messages. All messages are in `words/`.
#[test]
fn failures_hold_no_sentences() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = vec![src.join("error.rs")];
    files(&src.join("error"), &mut all);
    let mut found = Vec::new();
    let mut seen = 0;
    for file in all {
        let text = fs::read_to_string(&file).expect("text");
        seen += code(&text).matches("/// ").count();
        let sentences = ["message: String", "hint: String"];
        let sentences = sentences.into_iter().filter(|field| text.contains(field));
        let literals = literals(code(&text)).into_iter();
        let sentences = sentences.chain(literals.map(|(_, text)| text));
        found.extend(sentences.map(|text| format!("{}: {text}", file.display())));
    }
    assert!(seen > 100, "only {seen} comments were found");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// What these files print is not in `words/` yet.
const UNMOVED: [&str; 11] = [
    "commands/doctor.rs",
    "commands/enforce.rs",
    "commands/fence.rs",
    "commands/fence/",
    "commands/force_delete.rs",
    "commands/force_delete/",
    "commands/install.rs",
    "commands/status/pods.rs",
    "commands/unfence",
    "commands/uninstall.rs",
    "run/fencing/",
];

/// How texts begin that have several words, and are no messages.
const NO_MESSAGES: [&str; 2] = [
    // A shell command.
    "unset PROMPT_COMMAND; ",
    // A permission, by the verb and the resource.
    "get heartbeats",
];

/// Commands and what they share make no messages, but data for `words/`. Help is beside its flag, and
/// `context` belongs to errors that no code distinguishes.
#[test]
fn commands_hold_no_sentences() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    for layer in ["commands", "run", "args"] {
        files(&src.join(layer), &mut all);
    }
    let mut found = Vec::new();
    let mut seen = 0;
    for file in all {
        let path = file.strip_prefix(&src).expect("below src").display();
        let path = path.to_string();
        if UNMOVED.iter().any(|unmoved| path.starts_with(unmoved)) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("text");
        let literals = literals(code(&text));
        seen += literals.len();
        let sentences = literals.into_iter().filter(|(callee, text)| {
            let is_exempt = ["help", "help_template", "manual", "context"].contains(callee);
            !is_exempt
                && is_sentence(text)
                && !NO_MESSAGES.iter().any(|known| text.starts_with(known))
        });
        found.extend(sentences.map(|(_, text)| format!("src/{path}: {text}")));
    }
    assert!(seen > 50, "only {seen} literals were found");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Whether it has two words or more. Placeholders are none.
fn is_sentence(text: &str) -> bool {
    let mut rest = String::new();
    let mut depth = 0;
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ if depth == 0 => rest.push(c),
            _ => {}
        }
    }
    let words = rest.split_whitespace();
    let words = words.filter(|word| word.chars().filter(|c| c.is_alphabetic()).count() > 1);
    words.count() > 1
}

/// The string literals in `code` that are not in attributes or comments, each after the function that it is the
/// first argument of, if it is one.
fn literals(code: &str) -> Vec<(&str, &str)> {
    let (mut found, mut at, mut depth) = (Vec::new(), 0, 0);
    while let Some(c) = code[at..].chars().next() {
        let rest = &code[at..];
        let length = match c {
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("#[") || (depth > 0 && c == '[') => {
                depth += 1;
                if c == '#' { 2 } else { 1 }
            }
            ']' if depth > 0 => {
                depth -= 1;
                1
            }
            '\'' if rest[1..].starts_with(['"', '[', ']', '#']) => 3,
            '"' => {
                let length = closing(&rest[1..]);
                if depth == 0 {
                    found.push((callee(&code[..at]), &rest[1..=length]));
                }
                length + 2
            }
            c => c.len_utf8(),
        };
        at += length;
    }
    found
}

/// The length of a literal up to its closing quote.
fn closing(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.find(|c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    end.expect("a closing quote")
}

/// The name of the function whose call `before` opens.
fn callee(before: &str) -> &str {
    // A closure, as in `with_context(|| format!(…))`.
    let before = before.trim_end().trim_end_matches("|| format!(");
    let Some(name) = before.trim_end().strip_suffix('(') else {
        return "";
    };
    let start = name.rfind(|c: char| !c.is_alphanumeric() && c != '_');
    let name = &name[start.map_or(0, |start| start + 1)..];
    name.strip_prefix("with_").unwrap_or(name)
}

#[test]
fn a_sentence_is_found() {
    let text = "/// Like \"this\".\n#[doc = \"no [really]\",\n  help = \"no\"]\nf(\"it is \\\"off\\\"\", \"{no} one\");\n\
                x.help(\"a flag\").with_context(|| format!(\"a {}\", '\"'));";
    let found = [
        ("f", "it is \\\"off\\\""),
        ("", "{no} one"),
        ("help", "a flag"),
        ("context", "a {}"),
    ];
    assert_eq!(literals(text), found);
    assert!(is_sentence("it is off"));
    assert!(!is_sentence("{no} one {two}"));
}
