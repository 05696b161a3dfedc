//! The command-line reference as one page, made from the argument definitions alone.

use clap::{Arg, Command};

/// The page, in Markdown. The flags under the heading `shared` are those of all commands: they stand there once.
#[must_use]
pub(super) fn markdown(command: &Command, shared: &str) -> String {
    let mut page = String::new();
    let program = command.get_bin_name().unwrap_or_default();
    page.push_str(&format!("# {program}\n\n"));
    page.push_str("<!-- Made by `cargo xtask gen` from the definition of the arguments. -->\n\n");
    push_prose(&mut page, command);
    page.push_str("| command | what it does |\n| --- | --- |\n");
    for verb in verbs(command) {
        let name = verb.get_name();
        let about = verb
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        page.push_str(&format!("| [`{name}`](#{name}) | {} |\n", cell(&about)));
    }
    page.push('\n');
    for verb in verbs(command) {
        push_verb(&mut page, verb, shared);
    }
    page.push_str("## Connection flags\n\nEvery command accepts these flags.\n\n");
    push_flags(&mut page, command.get_arguments());
    page.trim_end().to_owned() + "\n"
}

fn push_verb(page: &mut String, verb: &Command, shared: &str) {
    page.push_str(&format!("## {}\n\n", verb.get_name()));
    push_prose(page, verb);
    let usage = verb.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    page.push_str(&format!("```text\n{usage}\n```\n\n"));
    let aliases: Vec<&str> = verb.get_visible_aliases().collect();
    if !aliases.is_empty() {
        page.push_str(&format!("Alias: `{}`\n\n", aliases.join("`, `")));
    }
    if let Some(after) = verb.get_after_long_help().or(verb.get_after_help()) {
        let after = after.to_string();
        // The help ends with where to find the connection flags. This page lists them itself.
        if let Some(examples) = after
            .split("\n\n")
            .next()
            .and_then(|text| text.strip_prefix("Examples:"))
        {
            push_shell(page, examples);
        }
    }
    push_flags(
        page,
        verb.get_arguments().filter(|arg| !is_shared(arg, shared)),
    );
}

fn push_prose(page: &mut String, command: &Command) {
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    for paragraph in about.split("\n\n") {
        if paragraph.starts_with("  ") {
            push_shell(page, paragraph);
        } else {
            page.push_str(&paragraph.replace('<', "&lt;"));
            page.push_str("\n\n");
        }
    }
}

/// A table of `args`; nothing if there are none to document.
fn push_flags<'a>(page: &mut String, args: impl Iterator<Item = &'a Arg>) {
    let rows: Vec<String> = args
        .filter(|arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version"))
        .map(|arg| format!("| {} | {} |\n", cell(&spelling(arg)), cell(&meaning(arg))))
        .collect();
    if rows.is_empty() {
        return;
    }
    page.push_str("| argument | meaning |\n| --- | --- |\n");
    page.extend(rows);
    page.push('\n');
}

/// `-o`, `--output FORMAT`, as typed.
fn spelling(arg: &Arg) -> String {
    let value = arg
        .get_value_names()
        .filter(|_| arg.get_action().takes_values())
        .and_then(<[_]>::first);
    let Some(long) = arg.get_long() else {
        let name = value.map_or_else(|| arg.get_id().as_str(), |name| name.as_str());
        let several = arg
            .get_num_args()
            .is_some_and(|count| count.max_values() > 1);
        return format!("`{name}{}`", if several { "…" } else { "" });
    };
    let is_optional = arg
        .get_num_args()
        .is_some_and(|count| count.min_values() == 0);
    let value = match value {
        None => String::new(),
        Some(value) if is_optional => format!("[={value}]"),
        Some(value) if arg.is_require_equals_set() => format!("={value}"),
        Some(value) => format!(" {value}"),
    };
    let short = arg
        .get_short()
        .map(|short| format!("`-{short}`, "))
        .unwrap_or_default();
    format!("{short}`--{long}{value}`")
}

/// Its help, values, default and environment variable.
fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help());
    let mut text = help.map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set() && !arg.is_hide_possible_values_set())
        .map(|value| match value.get_help() {
            Some(help) => format!("`{}` ({help})", value.get_name()),
            None => format!("`{}`", value.get_name()),
        })
        .collect();
    if arg.get_action().takes_values() && !values.is_empty() {
        text.push_str(&format!(": {}", values.join(", ")));
    }
    let defaults: Vec<String> = arg
        .get_default_values()
        .iter()
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    if arg.get_action().takes_values() && !defaults.is_empty() {
        let defaults = defaults.join(", ");
        text.push_str(&match text.ends_with('.') {
            true => format!(" Default: {defaults}."),
            false => format!("; default {defaults}"),
        });
    }
    if let Some(variable) = arg.get_env() {
        text.push_str(&format!(" [env: `{}`]", variable.to_string_lossy()));
    }
    text
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('<', "&lt;")
        .replace("\n\n", "<br>")
        .replace('\n', " ")
}

/// Commands, without the indentation that they have in a terminal.
fn push_shell(page: &mut String, text: &str) {
    let lines: Vec<&str> = text.trim_matches('\n').lines().map(str::trim).collect();
    page.push_str(&format!("```sh\n{}\n```\n\n", lines.join("\n")));
}

/// The commands that the help lists, in their order.
pub(super) fn verbs(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|verb| !verb.is_hide_set() && verb.get_name() != "help")
}

/// Whether all commands have `arg`, whose heading is then `shared`.
pub(super) fn is_shared(arg: &Arg, shared: &str) -> bool {
    arg.get_help_heading() == Some(shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stay_cells() {
        assert_eq!(cell("a|b\nc\n\n<d>"), "a\\|b c<br>&lt;d>");
    }
}
