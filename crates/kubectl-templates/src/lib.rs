//! kubectl's templates over JSON: `jsonpath=TEMPLATE` and `custom-columns=HEADER:PATH,...`.

mod elements;
mod path;
#[cfg(test)]
mod tests;

use serde_json::Value;

use self::path::Path;

/// A valid template.
#[derive(Debug)]
pub struct Template(Kind);

#[derive(Debug)]
enum Kind {
    JsonPath(Vec<Part>),
    /// A column without a path has no values.
    CustomColumns(Vec<(String, Option<Path>)>),
}

/// What a template makes of some data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rendered {
    /// Text, without its last line break.
    Text(String),
    /// A table: a row for each item of a list, or one for a single object.
    Table {
        /// The header of each column.
        headers: Vec<String>,
        /// The cells of each row.
        rows: Vec<Vec<String>>,
    },
}

/// Makes a value safe to print.
type Escape = fn(&str) -> String;

/// A part of a JSONPath template.
#[derive(Debug)]
enum Part {
    Text(String),
    /// The values, separated by spaces.
    Values(Path),
    /// The parts for each value.
    Range(Path, Vec<Part>),
}

/// kubectl's word for a cell without a value.
const NO_VALUE: &str = "<none>";

impl Template {
    /// The template in the value of an output flag; `None` if it is another format.
    ///
    /// # Errors
    /// If it is not a valid template, with what is wrong.
    #[must_use]
    pub fn parse(format: &str) -> Option<Result<Self, String>> {
        let (kind, text) = format.split_once('=')?;
        let kind = match kind {
            "jsonpath" if text.is_empty() => {
                Err("template format specified but no template given".to_owned())
            }
            "jsonpath" => parts(text).map(Kind::JsonPath),
            "custom-columns" => columns(text).map(Kind::CustomColumns),
            _ => return None,
        };
        Some(kind.map(Self))
    }

    /// Applies it to `data`, the values of which are printed as `escape` makes them.
    ///
    /// # Errors
    /// If `data` has no such elements, in kubectl's words.
    pub fn apply(&self, data: &Value, escape: Escape) -> Result<Rendered, String> {
        match &self.0 {
            Kind::JsonPath(parts) => {
                let mut text = String::new();
                render(parts, data, data, escape, &mut text)?;
                text.truncate(text.strip_suffix('\n').unwrap_or(&text).len());
                Ok(Rendered::Text(text))
            }
            Kind::CustomColumns(columns) => table(columns, data, escape),
        }
    }
}

fn render(
    parts: &[Part],
    root: &Value,
    current: &Value,
    escape: Escape,
    text: &mut String,
) -> Result<(), String> {
    for part in parts {
        match part {
            Part::Text(literal) => text.push_str(literal),
            Part::Values(path) => {
                let values = path.values(root, current)?.into_iter();
                let values: Vec<String> = values.map(|value| shown(value, escape)).collect();
                text.push_str(&values.join(" "));
            }
            Part::Range(path, parts) => {
                for value in path.values(root, current)? {
                    render(parts, root, value, escape, text)?;
                }
            }
        }
    }
    Ok(())
}

fn table(
    columns: &[(String, Option<Path>)],
    data: &Value,
    escape: Escape,
) -> Result<Rendered, String> {
    let rows = match data.get("items").and_then(Value::as_array) {
        Some(items) => items.iter().collect(),
        None => vec![data],
    };
    let cell = |row, path: &Option<Path>| {
        let values = path.as_ref().map(|path| path.values(row, row));
        let values = values.transpose()?.unwrap_or_default().into_iter();
        let values: Vec<String> = values.map(|value| shown(value, escape)).collect();
        Ok(match values.is_empty() {
            true => NO_VALUE.to_owned(),
            false => values.join(","),
        })
    };
    let cells = |row| columns.iter().map(|(_, path)| cell(row, path)).collect();
    Ok(Rendered::Table {
        headers: columns.iter().map(|(header, _)| escape(header)).collect(),
        rows: rows.into_iter().map(cells).collect::<Result<_, String>>()?,
    })
}

/// A value: text as it is, anything else as JSON.
fn shown(value: &Value, escape: Escape) -> String {
    match value {
        Value::String(text) => escape(text),
        Value::Null => String::new(),
        value => escape(&value.to_string()),
    }
}

fn columns(text: &str) -> Result<Vec<(String, Option<Path>)>, String> {
    if text.is_empty() {
        return Err("custom-columns format specified but no custom columns given".to_owned());
    }
    let columns = path::split(text, ',')
        .into_iter()
        .map(|column| match column.split_once(':') {
            Some((header, "")) => Ok((header.to_owned(), None)),
            Some((header, path)) => Ok((header.to_owned(), Some(Path::relaxed(path)?))),
            None => Err(format!(
                "\"{column}\" is not a column; write HEADER:PATH, e.g. NODE:.node"
            )),
        });
    columns.collect()
}

/// How deep ranges may be nested: each level repeats the text for every value of the one around it.
const DEEPEST: usize = 10;

/// The ranges that have no `{end}` yet.
type Open = (Path, Vec<Part>);

/// Parses a JSONPath template. Errors are in kubectl's words if kubectl has any.
fn parts(text: &str) -> Result<Vec<Part>, String> {
    let mut done: Vec<Part> = Vec::new();
    let mut ranges: Vec<Open> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let part = match rest.strip_prefix('{') {
            None => {
                let end = rest.find('{').unwrap_or(rest.len());
                let (literal, after) = rest.split_at(end);
                rest = after;
                Part::Text(literal.to_owned())
            }
            Some(after) => {
                let end = path::end_of(after, '}').ok_or("unclosed action")?;
                rest = &after[end + 1..];
                match after[..end].trim() {
                    "end" => {
                        let (path, parts) = ranges.pop().ok_or("not in range, nothing to end")?;
                        Part::Range(path, std::mem::replace(&mut done, parts))
                    }
                    "" => return Err("{} has no path".to_owned()),
                    action => match ranged(action) {
                        Some("") => return Err("{range} has no path".to_owned()),
                        Some(_) if ranges.len() == DEEPEST => {
                            return Err(format!("ranges are nested more than {DEEPEST} deep"));
                        }
                        Some(path) => {
                            ranges.push((Path::parse(path)?, std::mem::take(&mut done)));
                            continue;
                        }
                        None if action.starts_with(['"', '\'']) => {
                            Part::Text(path::unquoted(action)?)
                        }
                        None => Part::Values(Path::parse(action)?),
                    },
                }
            }
        };
        done.push(part);
    }
    match ranges.is_empty() {
        true => Ok(done),
        false => Err("a {range ...} has no {end}".to_owned()),
    }
}

/// The path of a range.
fn ranged(action: &str) -> Option<&str> {
    let path = action.strip_prefix("range")?;
    let ends = path
        .chars()
        .next()
        .is_none_or(|next| !path::is_of_identifier(next));
    ends.then(|| path.trim_start())
}
