//! Data in the requested format.

use crate::layout::table::{AlignedTable, Column};
use anyhow::Context as _;
use kubectl_templates::{Rendered, Template};
use serde::Serialize;

use super::data::Data;
use super::item::{Item, NodeList};
use crate::output::format::Format;
use crate::text::{escape, is_unprintable};
use crate::words::failure::{UNFILLED, UNPRINTABLE};

/// The text of `data`. `None` for output in words, which is made elsewhere, and if there is nothing to print.
///
/// # Errors
/// If it can't be serialized.
pub(crate) fn data(data: &impl Data, format: Format) -> anyhow::Result<Option<String>> {
    let lines = |lines: Vec<String>| (!lines.is_empty()).then(|| lines.join("\n"));
    Ok(match format {
        Format::Text | Format::Wide => None,
        Format::Name => lines(data.names()),
        Format::LockId => lines(data.lock_ids()),
        Format::Json => Some(json(data)?),
        Format::Yaml => Some(yaml(data)?),
        Format::Template(template, headers) => self::template(template, headers, data, &mut None)?,
    })
}

/// The changes of a watch, for programs.
#[derive(Debug)]
pub(crate) struct Changes {
    format: Format,
    /// Whether exactly one node was named.
    single: bool,
    /// The table of custom columns, after its first row.
    table: Option<AlignedTable>,
}

impl Changes {
    pub(crate) fn new(format: Format, single: bool) -> Self {
        Self {
            format,
            single,
            table: None,
        }
    }

    /// The text of the next change; `None` if there is nothing to print.
    ///
    /// # Errors
    /// If it can't be serialized.
    pub(crate) fn next(&mut self, item: Item) -> anyhow::Result<Option<String>> {
        match self.format {
            Format::Json => json(&item).map(Some),
            Format::Yaml => Ok(Some(format!("---\n{}", yaml(&item)?))),
            Format::Template(template, headers) => {
                self::template(template, headers, &item, &mut self.table)
            }
            format => data(&NodeList::new(vec![item]).single(self.single), format),
        }
    }
}

/// `data` in a template of the caller's; `None` if that gives no text. Rows are added to `table` if there is one.
///
/// # Errors
/// If it can't be serialized, or if the template needs elements that it does not have.
fn template(
    template: &Template,
    headers: bool,
    data: &impl Serialize,
    table: &mut Option<AlignedTable>,
) -> anyhow::Result<Option<String>> {
    let data = serde_json::to_value(data).context(UNPRINTABLE)?;
    let rendered = template.apply(&data, escape).map_err(anyhow::Error::msg);
    let text = match rendered.context(UNFILLED)? {
        Rendered::Text(text) => text,
        Rendered::Table { headers: of, rows } => {
            let columns = of.into_iter().map(Column::uncut).collect();
            let table = table.get_or_insert_with(|| AlignedTable::new(columns, headers, None));
            table.rows(rows.iter().cloned()).join("\n")
        }
    };
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// `data` as JSON, safe for a terminal: reasons and holders may contain any text.
///
/// # Errors
/// If it can't be serialized.
pub(crate) fn json(data: &impl Serialize) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(data).context(UNPRINTABLE)?;
    // Outside of strings, the only such characters in JSON are the line breaks of its layout.
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if acts_on_a_terminal(c) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            escaped.push(c);
        }
    }
    Ok(escaped)
}

/// `data` as YAML, safe for a terminal. Plain YAML scalars have no escapes. If one is needed, the output is
/// in JSON style, which is valid YAML too.
///
/// # Errors
/// If it can't be serialized.
pub(crate) fn yaml(data: &impl Serialize) -> anyhow::Result<String> {
    let text = serde_saphyr::to_string(data).context(UNPRINTABLE)?;
    if text.chars().any(acts_on_a_terminal) {
        return json(data);
    }
    Ok(text.trim_end().to_owned())
}

fn acts_on_a_terminal(c: char) -> bool {
    c != '\n' && is_unprintable(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_data_acts_on_a_terminal_and_nothing_of_it_is_lost() {
        let text =
            "a\x1b[2Jb\r\nc\u{7f}\u{85}\u{9b}31me\u{202e}f\u{2066}\u{feff}g\u{fffb} grün ✓ 🛠";
        let data = serde_json::json!({text: [text, {"plain": "text"}]});
        for printed in [json(&data), yaml(&data)] {
            let printed = printed.expect("it can be printed");
            assert!(!printed.chars().any(acts_on_a_terminal), "{printed:?}");
            assert!(printed.contains("grün ✓ 🛠"), "{printed}");
            let read: serde_json::Value = serde_saphyr::from_str(&printed).expect("YAML");
            assert_eq!(read, data);
        }
        let printed = json(&data).expect("it can be printed");
        let read: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
        assert_eq!(read, data);
        assert_eq!(
            yaml(&serde_json::json!({"plain": "text"})).expect("it can be printed"),
            "plain: text"
        );
    }
}
