//! Items in the form that was asked for.

use serde::Serialize;

use super::item::{Item, List};
use crate::cli::output::Format;
use crate::failure::Failure;

/// One node as itself, several as a list.
#[derive(Serialize)]
#[serde(untagged)]
enum Shape {
    One(Box<Item>),
    Many(List),
}

/// The text of `items`; `single` where one node was named, which is then not wrapped in a list, nor
/// an empty list where nothing came of it. Words for people are elsewhere: for them, and where there
/// is nothing to say, it is `None`.
///
/// # Errors
/// Where the items can't be written in that form.
pub(crate) fn items(
    mut items: Vec<Item>,
    single: bool,
    format: Format,
) -> Result<Option<String>, Failure> {
    if single && items.is_empty() {
        return Ok(None);
    }
    let lines = |lines: Vec<String>| (!lines.is_empty()).then(|| lines.join("\n"));
    let mut shape = || {
        if single && items.len() == 1 {
            Shape::One(Box::new(items.remove(0)))
        } else {
            Shape::Many(List::new(std::mem::take(&mut items)))
        }
    };
    Ok(match format {
        Format::Text | Format::Wide => None,
        Format::Name => lines(
            items
                .iter()
                .map(|item| format!("node/{}", item.node))
                .collect(),
        ),
        Format::Token => lines(
            items
                .iter()
                .filter_map(|item| Some(format!("{} {}", item.node, item.token.as_deref()?)))
                .collect(),
        ),
        Format::Json => Some(json(&shape())?),
        Format::Yaml => Some(yaml(&shape())?),
    })
}

/// `data` as JSON.
///
/// # Errors
/// Where it can't be written so.
pub(crate) fn json(data: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(data).map_err(|error| unprintable(&error))
}

/// `data` as YAML.
///
/// # Errors
/// Where it can't be written so.
pub(crate) fn yaml(data: &impl Serialize) -> Result<String, Failure> {
    let text = serde_saphyr::to_string(data).map_err(|error| unprintable(&error))?;
    Ok(text.trim_end().to_owned())
}

fn unprintable(error: &dyn std::fmt::Display) -> Failure {
    Failure::input(format!("the result can't be printed: {error}"))
}
