//! Reads the source files of a package: the modules that each file names, and its texts. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::iter::Peekable;
use std::path::{Path, PathBuf};

use proc_macro2::token_stream::IntoIter;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A module by its path below the crate, such as `["words", "time"]`.
pub(crate) type Module = Vec<String>;

/// The tokens of each file below `src/`, by its path there.
pub(crate) fn sources() -> BTreeMap<PathBuf, TokenStream> {
    sources_of(Path::new("."))
}

/// The tokens of each file below `src/` of `package`, a folder of the workspace.
fn sources_of(package: &Path) -> BTreeMap<PathBuf, TokenStream> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let src = root.join(package).join("src");
    let mut all = Vec::new();
    files(&src, &mut all);
    all.retain(|file| file.file_name().is_some_and(|name| name != "tests.rs"));
    let sources = all.into_iter().map(|file| {
        let text = fs::read_to_string(&file).expect("text");
        let below = file.strip_prefix(&src).expect("below src").to_owned();
        (below, text.parse().expect("Rust"))
    });
    sources.collect()
}

/// Adds the Rust files below `directory`.
pub(crate) fn files(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The module of a file below `src/`.
pub(crate) fn module(file: &Path) -> Module {
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

/// The modules that each module names. A module without its own file counts as its parent.
pub(crate) fn imports() -> BTreeMap<Module, BTreeSet<Module>> {
    imports_of(Path::new("."))
}

/// The imports of the modules of `package`, as in [`imports`].
pub(crate) fn imports_of(package: &Path) -> BTreeMap<Module, BTreeSet<Module>> {
    let sources = sources_of(package);
    let modules = sources.keys().map(|file| module(file)).collect();
    let imports = sources.into_iter().map(|(file, tokens)| {
        let from = module(&file);
        let to = imported(&from, tokens, &modules);
        (from, to)
    });
    imports.collect()
}

/// The modules in `modules` that the file of `from` names, in `use` and elsewhere. Its own parts that it only
/// re-exports with `pub use` are left out.
pub(crate) fn imported(
    from: &Module,
    tokens: TokenStream,
    modules: &BTreeSet<Module>,
) -> BTreeSet<Module> {
    let parts = modules
        .iter()
        .filter(|module| module.len() == from.len() + 1 && module.starts_with(from));
    let mut reader = Reader {
        parts: parts.filter_map(|part| part.last().cloned()).collect(),
        ..Reader::default()
    };
    reader.read(tokens, "");
    let found = reader.paths.into_iter().map(|path| {
        let mut full = match &*path[0] {
            "crate" => Module::new(),
            _ => from.clone(),
        };
        for name in path {
            match &*name {
                "crate" | "self" => {}
                "super" => drop(full.pop()),
                _ => full.push(name),
            }
        }
        while !full.is_empty() && !modules.contains(&full) {
            full.pop();
        }
        if full.is_empty() {
            full.push("main".to_owned());
        }
        full
    });
    found.filter(|to| to != from).collect()
}

/// The string literals that are not in attributes or comments. Each comes with the function that it is an argument of,
/// or with an empty name.
pub(crate) fn literals(tokens: TokenStream) -> Vec<(String, String)> {
    let mut reader = Reader::default();
    reader.read(tokens, "");
    reader.literals
}

/// All names in a file.
pub(crate) fn identifiers(tokens: TokenStream) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for token in tokens {
        match token {
            TokenTree::Ident(name) => drop(names.insert(name.to_string())),
            TokenTree::Group(group) => names.extend(identifiers(group.stream())),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    names
}

#[derive(Default)]
struct Reader {
    /// The child modules of the file.
    parts: BTreeSet<String>,
    /// The paths that begin with `crate`, `self`, `super`, or one of `parts`.
    paths: Vec<Vec<String>>,
    literals: Vec<(String, String)>,
}

impl Reader {
    /// Reads `tokens`. If they are arguments, `callee` is the function that is called.
    fn read(&mut self, tokens: TokenStream, callee: &str) {
        let mut tokens = tokens.into_iter().peekable();
        let mut name = String::new();
        let mut is_below_another = false;
        while let Some(token) = tokens.next() {
            let last = std::mem::take(&mut name);
            let is_part_of_path = std::mem::take(&mut is_below_another);
            match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    if is_cfg_test(attribute(&mut tokens)) {
                        skip_item(&mut tokens);
                    }
                }
                // The text of a macro such as `format!(…)` is an argument of the function around it.
                TokenTree::Punct(punct) if punct.as_char() == '!' => callee.clone_into(&mut name),
                TokenTree::Punct(punct) => is_below_another = punct.as_char() == ':',
                TokenTree::Literal(literal) => {
                    let literal = literal.to_string();
                    if let Some(text) = string(&literal) {
                        self.literals.push((callee.to_owned(), text.to_owned()));
                    }
                }
                TokenTree::Ident(ident) => {
                    name = ident.to_string();
                    if name == "pub" {
                        // The path in `pub(in crate::words)` is no import.
                        tokens.next_if(|next| matches!(next, TokenTree::Group(_)));
                    } else if name == "use" && last == "pub" {
                        self.hand_on(&mut tokens);
                    } else if ["crate", "self", "super"].contains(&&*name)
                        || (self.parts.contains(&name) && !is_part_of_path)
                    {
                        self.path(vec![name.clone()], &mut tokens);
                    }
                }
                TokenTree::Group(group) => {
                    let callee = match group.delimiter() {
                        Delimiter::Parenthesis => &*last,
                        _ => "",
                    };
                    self.read(group.stream(), callee);
                }
            }
        }
    }

    /// Reads a `pub use`: only re-exports of other modules are imports.
    fn hand_on(&mut self, tokens: &mut Peekable<IntoIter>) {
        let used = tokens.take_while(
            |token| !matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';'),
        );
        let mut reader = Self::default();
        reader.read(used.collect(), "");
        let others = reader.paths.into_iter().filter(|path| path[0] != "self");
        self.paths.extend(others);
    }

    /// Reads the rest of the path that begins with `path`, which may end in braces.
    fn path(&mut self, mut path: Vec<String>, tokens: &mut Peekable<IntoIter>) {
        while next_is(tokens, ':') {
            tokens.next();
            tokens.next();
            match tokens.peek() {
                Some(TokenTree::Ident(name)) => {
                    path.push(name.to_string());
                    tokens.next();
                }
                Some(TokenTree::Group(group)) => {
                    let mut inner = group.stream().into_iter().peekable();
                    while let Some(token) = inner.next() {
                        if let TokenTree::Ident(name) = token {
                            let mut path = path.clone();
                            path.push(name.to_string());
                            self.path(path, &mut inner);
                        }
                        // Skips another name, as in `a as b`.
                        while inner.peek().is_some() && !next_is(&mut inner, ',') {
                            inner.next();
                        }
                        inner.next();
                    }
                    return;
                }
                // In `super::*`, the module itself is imported.
                Some(TokenTree::Punct(all)) if all.as_char() == '*' => {
                    self.paths.push(path);
                    return;
                }
                _ => break,
            }
        }
        if path.len() > 1 {
            self.paths.push(path);
        }
    }
}

/// The text between the quotes of a string literal.
fn string(literal: &str) -> Option<&str> {
    let (before, text) = literal.split_once('"')?;
    let (text, _) = text.rsplit_once('"')?;
    (!before.contains('\'')).then_some(text)
}

fn next_is(tokens: &mut Peekable<IntoIter>, punct: char) -> bool {
    matches!(tokens.peek(), Some(TokenTree::Punct(next)) if next.as_char() == punct)
}

/// Reads the attribute after its `#`.
fn attribute(tokens: &mut Peekable<IntoIter>) -> Option<Group> {
    if next_is(tokens, '!') {
        tokens.next();
    }
    match tokens.next() {
        Some(TokenTree::Group(group)) => Some(group),
        _ => None,
    }
}

fn is_cfg_test(attribute: Option<Group>) -> bool {
    attribute
        .is_some_and(|attribute| attribute.stream().to_string().replace(' ', "") == "cfg(test)")
}

/// Skips the item after its attribute.
fn skip_item(tokens: &mut Peekable<IntoIter>) {
    for token in tokens {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ';' => return,
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return,
            _ => {}
        }
    }
}

fn tokens(text: &str) -> TokenStream {
    text.parse().expect("Rust")
}

fn names(path: &str) -> Module {
    path.split('/').map(ToOwned::to_owned).collect()
}

#[test]
fn an_import_is_found_in_any_form() {
    let modules = ["a", "b", "c", "words", "words/x", "words/y", "words/x/part"];
    let modules = modules.map(names).into();
    let found = |text| imported(&names("words/x"), tokens(text), &modules);
    let a_and_c = BTreeSet::from(["a", "c"].map(names));
    for text in [
        "use crate::a::B;\nuse crate::c::{D, E};",
        "use crate::{a::{self, B as F}, c::D};",
        "use super::super::{a, c::*};",
        "fn f(x: crate::a::B) { crate::c::g(x) }",
        "fn f() { format!(\"{}\", super::super::a::g::<u8>(crate::c::H { i: 1 })) }",
    ] {
        assert_eq!(found(text), a_and_c, "{text}");
    }
    assert_eq!(found("use super::y::Z;"), [names("words/y")].into());
    assert_eq!(found("pub use super::y::Z;"), [names("words/y")].into());
    for text in [
        "use part::A;",
        "use self::part::{A, B};",
        "fn f(x: &part::A) { part::g(x) }",
    ] {
        assert_eq!(found(text), [names("words/x/part")].into(), "{text}");
    }
    for text in ["use super::*;", "use super::{self as around};"] {
        assert_eq!(found(text), [names("words")].into(), "{text}");
    }
    for text in [
        "use crate::*;",
        "use crate::AtTheTop;",
        "fn f() { super::super::g() }",
    ] {
        assert_eq!(found(text), [names("main")].into(), "{text}");
    }
    for text in [
        "// use crate::a::B;\n/// [`crate::a`]\nfn f(&self) { self.a() }",
        "#[cfg(test)]\nuse crate::a::B;\n#[cfg(test)]\nmod tests { use crate::a::B; }",
        "pub(in crate::a) use self::b::C;",
        "mod part;\npub use part::A;\npub(crate) use self::part::{B, C};",
        "fn f(part: A) { part.g(other::part::B) }",
        "const X: &str = \"use crate::a::B;\";",
    ] {
        assert_eq!(found(text), BTreeSet::new(), "{text}");
    }
}

#[test]
fn a_text_is_found_with_its_function() {
    let text = "/// Like \"this\".\n#[doc = \"no [really]\",\n  help = \"no\"]\nfn a() { f(\"it is \\\"off\\\"\", \"{no} one\");\n\
                x.help(\"a flag\").with_context(|| format!(\"a {}\", '\"')); }\n#[cfg(test)] mod tests { \"no\" }";
    let found = literals(tokens(text));
    let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (&**a, &**b)).collect();
    let expected = [
        ("f", "it is \\\"off\\\""),
        ("f", "{no} one"),
        ("help", "a flag"),
        ("with_context", "a {}"),
    ];
    assert_eq!(found, expected);
}
