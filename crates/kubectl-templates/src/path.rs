//! A path in kubectl's syntax: like RFC 9535, but without `$`, with `\` before a dot in a name, and with
//! the values of a union one member after the other.

use std::fmt::Write as _;

use jsonpath_rust::parser::model::JpQuery;
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::{QueryRef, js_path_process};
use serde_json::Value;

use crate::elements::Elements;

/// How a path begins.
const STARTS: [char; 4] = ['$', '@', '.', '['];

/// A path from the root of the data, or from the current value of a range.
#[derive(Debug)]
pub(super) struct Path {
    from_root: bool,
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Query(JpQuery),
    /// An index or a slice. Unlike in RFC 9535, it must be within the list.
    Elements(Elements),
    /// The values of each of these, one after the other.
    Union(Vec<Vec<Step>>),
}

impl Path {
    /// Parses a path such as `.items[*].node`, `$.items` or `@.node`.
    pub(super) fn parse(typed: &str) -> Result<Self, String> {
        let typed = typed.trim();
        if !typed.starts_with(STARTS) {
            return Err(unrecognized(typed));
        }
        let (from_root, path) = match typed.strip_prefix('$') {
            Some(path) => (true, path),
            None => (false, typed.strip_prefix('@').unwrap_or(typed)),
        };
        let invalid = |why: String| format!("\"{typed}\" is not a JSONPath: {why}");
        Ok(Self {
            from_root,
            steps: steps(path).map_err(invalid)?,
        })
    }

    /// The same if braces and the first dot may be missing, as in `custom-columns`.
    pub(super) fn relaxed(typed: &str) -> Result<Self, String> {
        let braced = typed
            .strip_prefix('{')
            .and_then(|path| path.strip_suffix('}'));
        let path = braced.unwrap_or(typed);
        match path.starts_with(STARTS) {
            true => Self::parse(path),
            false => Self::parse(&format!(".{path}")),
        }
    }

    /// The values that it leads to. A field that does not exist is left out.
    ///
    /// # Errors
    /// If an element does not exist, in kubectl's words.
    pub(super) fn values<'a>(
        &self,
        root: &'a Value,
        current: &'a Value,
    ) -> Result<Vec<&'a Value>, String> {
        let start = if self.from_root { root } else { current };
        follow(&self.steps, vec![start])
    }
}

fn follow<'a>(steps: &[Step], start: Vec<&'a Value>) -> Result<Vec<&'a Value>, String> {
    steps.iter().try_fold(start, |values, step| match step {
        Step::Query(query) => Ok(values
            .into_iter()
            .flat_map(|value| js_path_process(query, value).unwrap_or_default())
            .map(QueryRef::val)
            .collect()),
        Step::Elements(elements) => {
            let values = values.into_iter().filter(|value| !value.is_null());
            let found = values.map(|value| elements.of(value));
            Ok(found.collect::<Result<Vec<_>, _>>()?.concat())
        }
        Step::Union(members) => {
            let found = members.iter().map(|member| follow(member, values.clone()));
            Ok(found.collect::<Result<Vec<_>, _>>()?.concat())
        }
    })
}

/// Translates a path. RFC 9535 has no names with special characters outside of brackets.
fn steps(path: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut query = "$".to_owned();
    let mut rest = path;
    while !rest.is_empty() {
        let dots = rest.len() - rest.trim_start_matches('.').len();
        let (prefix, after) = rest.split_at(dots);
        if dots > 2 || (after.is_empty() && path != ".") {
            return Err("a name is missing after a dot".to_owned());
        }
        let descends = if dots == 2 { ".." } else { "" };
        query.push_str(descends);
        if let Some(inside) = after.strip_prefix('[') {
            if dots == 1 {
                return Err(format!("{prefix}[ is not valid"));
            }
            let end = end_of(inside, ']').ok_or("a [ has no ]")?;
            let (inside, after) = (inside[..end].trim(), &inside[end + 1..]);
            rest = after;
            let members = match inside.starts_with('?') {
                true => vec![inside],
                false => split(inside, ','),
            };
            match &members[..] {
                [member]
                    if !is_dotted(member) && (dots == 2 || Elements::parse(member).is_none()) =>
                {
                    let _ = write!(query, "[{member}]");
                }
                members => {
                    if dots == 2 {
                        return Err("..[ takes one name or index".to_owned());
                    }
                    steps.push(Step::Query(parsed(&query)?));
                    query = "$".to_owned();
                    let members = members.iter().map(|member| self::member(member.trim()));
                    steps.push(Step::Union(members.collect::<Result<_, _>>()?));
                }
            }
            continue;
        }
        let (name, after) = name(after);
        if after.starts_with(char::is_whitespace) {
            return Err(unrecognized(after.trim_start()));
        }
        rest = after;
        match name.as_str() {
            "" => {}
            "*" => query.push_str("[*]"),
            name => {
                let _ = write!(query, "[{}]", Value::from(name));
            }
        }
    }
    steps.push(Step::Query(parsed(&query)?));
    Ok(steps)
}

/// A quoted name may be a path itself, as in `['metadata.name', 'status']`.
fn member(typed: &str) -> Result<Vec<Step>, String> {
    if let Some(elements) = Elements::parse(typed) {
        return Ok(vec![Step::Elements(elements)]);
    }
    match typed.starts_with(['"', '\'']) {
        true => steps(&format!(".{}", &typed[1..typed.len() - 1])),
        false => Ok(vec![Step::Query(parsed(&format!("$[{typed}]"))?)]),
    }
}

fn is_dotted(member: &str) -> bool {
    member.starts_with(['"', '\'']) && member.len() > 1 && member.contains('.')
}

fn parsed(query: &str) -> Result<JpQuery, String> {
    parse_json_path(query).map_err(|_| "see docs/scripts.md for the syntax".to_owned())
}

/// The error for an action, or the rest of one, that is not a path.
fn unrecognized(text: &str) -> String {
    let end = text.find(|next| !is_of_identifier(next));
    match (&text[..end.unwrap_or(text.len())], text.chars().next()) {
        ("", Some(first)) => {
            let code = u32::from(first);
            format!("unrecognized character in action: U+{code:04X} '{first}'")
        }
        (identifier, _) => format!("unrecognized identifier {identifier}"),
    }
}

/// Whether a word such as `range` may contain this.
pub(super) fn is_of_identifier(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

/// A name up to the next dot, bracket or space, and the rest. A backslash takes the next character as it is.
fn name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '.' | '[' => return (name, &text[index..]),
            space if space.is_whitespace() => return (name, &text[index..]),
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            _ => name.push(character),
        }
    }
    (name, "")
}

/// The index of `end` in `text`, outside of quotes and of brackets that were opened in it.
pub(super) fn end_of(text: &str, end: char) -> Option<usize> {
    let mut depth = 0;
    let mut quote = None;
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match (quote, character) {
            (Some(_), '\\') => {
                characters.next();
            }
            (Some(open), character) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, character) if depth == 0 && character == end => return Some(index),
            (None, '[' | '(' | '{') => depth += 1,
            (None, ']' | ')' | '}') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

/// The parts of `text` between separators that are outside of quotes and brackets.
pub(super) fn split(mut text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    while let Some(end) = end_of(text, separator) {
        parts.push(&text[..end]);
        text = &text[end + 1..];
    }
    parts.push(text);
    parts
}

/// The text of a literal in quotes. Escapes that only kubectl knows are refused. Otherwise they would be printed wrongly.
pub(super) fn unquoted(typed: &str) -> Result<String, String> {
    let invalid = || format!("{typed} is not a quoted text");
    let mut characters = typed.chars();
    let quote = characters.next();
    let mut text = String::new();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.push(match characters.next().ok_or_else(invalid)? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other if other == '\\' || Some(other) == quote => other,
                other => return Err(format!("{typed} has the unknown escape \\{other}")),
            }),
            character if Some(character) == quote => {
                return match characters.next() {
                    None => Ok(text),
                    Some(_) => Err(invalid()),
                };
            }
            character => text.push(character),
        }
    }
    Err(invalid())
}
