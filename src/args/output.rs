//! How results are printed.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Arg, Args, Command, ValueEnum};
use kubectl_templates::Template;

use crate::error::InputError;
use crate::output::format::Format;
use crate::text::escape;

/// Output flags, the same for every verb.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct OutputArgs {
    /// Format: wide, name, json, yaml, lock-id, jsonpath=, custom-columns=
    ///
    /// docs/json.md has the fields. Templates are those of kubectl: jsonpath='{.items[*].node}' and
    /// custom-columns=NODE:.node,STATE:.state.
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FORMAT",
        hide_possible_values = true,
        value_parser = FormatParser { lock_ids: true }
    )]
    pub(crate) format: Option<Format>,

    /// Print only warnings, errors and -o output
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl OutputArgs {
    /// Refuses to print lock ids with `flag`, which leaves none.
    ///
    /// # Errors
    /// If lock ids are requested.
    pub(crate) fn without_lock_ids(self, flag: &'static str) -> Result<(), InputError> {
        match self.format() {
            Format::LockId => Err(InputError::NoLockIds { flag }),
            _ => Ok(()),
        }
    }

    /// The requested format, else words for people.
    pub(crate) fn format(self) -> Format {
        self.format.unwrap_or_default()
    }
}

/// The `-o` of a verb that leaves no lock behind: it has no lock ids.
pub(crate) fn offers_no_lock_id(format: Arg) -> Arg {
    let without = |help: &clap::builder::StyledStr| help.to_string().replace(" lock-id,", "");
    let help = format.get_help().map(without).unwrap_or_default();
    let long_help = format.get_long_help().map(without).unwrap_or_default();
    format
        .help(help)
        .long_help(long_help)
        .value_parser(FormatParser { lock_ids: false })
}

/// The `-o` of a verb whose data has no nodes or no states, with templates that fit it.
pub(crate) fn templates(format: Arg, jsonpath: &str, columns: &str) -> Arg {
    let help = format.get_long_help().map(ToString::to_string);
    let help = help.unwrap_or_default().replace(JSONPATH, jsonpath);
    format.long_help(help.replace(COLUMNS, columns))
}

/// The templates in the help of `-o`.
const JSONPATH: &str = "{.items[*].node}";
const COLUMNS: &str = "NODE:.node,STATE:.state";

/// Parses a format or a template.
#[derive(Clone, Copy, Debug)]
struct FormatParser {
    lock_ids: bool,
}

impl TypedValueParser for FormatParser {
    type Value = Format;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Format, clap::Error> {
        if value.to_str().and_then(Template::parse).is_none() {
            return PossibleValuesParser::new(self.values())
                .try_map(|name| Format::from_str(&name, false))
                .parse_ref(command, arg, value);
        }
        let parser = StringValueParser::new().try_map(|typed| {
            let template = Template::parse(&typed).unwrap_or_else(|| Err(typed.clone()));
            let template = template.map_err(|why| escape(&why))?;
            Ok::<_, String>(Format::Template(Box::leak(Box::new(template)), true))
        });
        parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.values().into_iter()))
    }
}

impl FormatParser {
    fn values(self) -> Vec<PossibleValue> {
        let formats = Format::value_variants().iter();
        let formats = formats.filter(|format| self.lock_ids || **format != Format::LockId);
        let formats = formats.filter_map(ValueEnum::to_possible_value);
        let templates = [
            PossibleValue::new("jsonpath=").help("Values from a kubectl JSONPath template"),
            PossibleValue::new("custom-columns=").help("Table with columns as HEADER:PATH,..."),
        ];
        formats.chain(templates).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use serde_json::Value;

    use super::*;
    use crate::app::Cli;
    use crate::output::schema::schema;

    /// What the schema says about a field of `data`, such as `items[*].node`.
    fn field<'a>(schema: &'a Value, data: &'a Value, path: &str) -> Option<&'a Value> {
        let target = |data: &'a Value| match data["$ref"].as_str() {
            Some(link) => schema.pointer(link.strip_prefix('#').expect("a link within the schema")),
            None => Some(data),
        };
        path.split('.').try_fold(data, |data, step| {
            let name = step.strip_suffix("[*]");
            let field = target(data)?["properties"].get(name.unwrap_or(step))?;
            if name.is_some() {
                field.get("items")
            } else {
                Some(field)
            }
        })
    }

    #[test]
    fn templates_in_the_help_name_fields_that_the_command_prints() {
        let schema = Value::from(schema());
        let mut checked = Vec::new();
        for verb in Cli::command().get_subcommands() {
            let format = verb.get_arguments().find(|arg| arg.get_id() == "format");
            let help = format.and_then(Arg::get_long_help).map(ToString::to_string);
            let Some((_, help)) = help
                .as_deref()
                .and_then(|help| help.split_once("jsonpath='{."))
            else {
                continue;
            };
            let templates = help
                .trim_end_matches('.')
                .split_once("}' and custom-columns=");
            let (jsonpath, columns) = templates.expect("two templates");
            let kind = match verb.get_name() {
                "fence" | "unfence" => "FencingList",
                "history" => "LockRecordList",
                "force-delete" => "ForceDeletionList",
                "leases" => "LeaseSummaryList",
                "doctor" => "CheckupList",
                "why" => "DiagnosisList",
                _ => "NodeMaintenanceList",
            };
            let data = &schema["$defs"][kind];
            // As in kubectl, the columns of a list belong to its items.
            let columns = columns.split(',').map(|column| {
                let (_, path) = column.split_once(":.").expect("a header and a path");
                format!("items[*].{path}")
            });
            for path in columns.chain([jsonpath.to_owned()]) {
                assert!(field(&schema, data, &path).is_some(), "{kind}: {path}");
                checked.push(verb.get_name().to_owned());
            }
        }
        checked.dedup();
        assert_eq!(checked.len(), 14, "{checked:?}");
    }

    #[test]
    fn lock_ids_are_offered_by_the_verbs_alone_that_may_print_some() {
        let command = Cli::command();
        let is_offered = |verb: &&clap::Command| {
            let format = verb.get_arguments().find(|arg| arg.get_id() == "format");
            let values = format.map(Arg::get_possible_values).unwrap_or_default();
            values.iter().any(|value| value.get_name() == "lock-id")
        };
        let verbs: Vec<&str> = command
            .get_subcommands()
            .filter(is_offered)
            .map(clap::Command::get_name)
            .collect();
        assert_eq!(verbs, ["acquire", "renew", "hold", "status", "wait"]);
    }
}
