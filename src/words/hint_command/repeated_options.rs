//! What was typed, for the next command.

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::text::{escape, for_shell};

/// With more nodes, a line is too long to read.
const MOST_NODES: usize = 10;

/// A longer command does not fit into a line with the rest.
const LONGEST_COMMAND: usize = 60;

/// The nodes right after the value of `-m`, and both as one reason.
pub(super) fn unquoted(typed: &ArgMatches) -> Option<(Vec<String>, String)> {
    let (mut reason, nodes) = (values(typed, "message")?.pop()?, values(typed, "nodes")?);
    let mut next = typed.indices_of("message")?.next_back()? + 1;
    let mut after = Vec::new();
    for (node, index) in nodes.into_iter().zip(typed.indices_of("nodes")?) {
        if index == next {
            reason = format!("{reason} {node}");
            after.push(node);
            next += 1;
        }
    }
    (!after.is_empty()).then_some((after, reason))
}

/// The values of an argument, if it was typed. Each verb defines only some.
pub(super) fn values(matches: &ArgMatches, id: &str) -> Option<Vec<String>> {
    let exists = matches.try_contains_id(id).unwrap_or(false);
    let is_typed = exists && matches.value_source(id) == Some(ValueSource::CommandLine);
    let values = is_typed.then(|| matches.get_raw(id)).flatten()?;
    Some(
        values
            .map(|value| value.to_string_lossy().into_owned())
            .collect(),
    )
}

/// An option after a space, with each of its values.
pub(super) fn option(matches: &ArgMatches, id: &str, flag: &str) -> Option<String> {
    let values = values(matches, id)?;
    let values = values
        .iter()
        .map(|value| format!(" {flag} {}", for_shell(value)));
    Some(values.collect())
}

/// What a hint says in its own way, or leaves out: which nodes and how many of them, the reason, the command, the output, and
/// how long to wait.
const SAID_OTHERWISE: [&str; 17] = [
    "all",
    "command",
    "dry_run",
    "format",
    "free_only",
    "hook",
    "lock_id",
    "message",
    "node",
    "nodes",
    "nodes_from",
    "partial",
    "quiet",
    "selector",
    "timeout",
    "wait",
    "yes",
];

pub(super) fn is_said_otherwise(id: &str) -> bool {
    SAID_OTHERWISE.contains(&id)
}

/// The other options of the verb that were typed, each with its flag.
pub(super) fn options(matches: &ArgMatches, typed: &ArgMatches) -> Vec<(String, String)> {
    let mut options = Vec::new();
    for id in typed.ids().map(clap::Id::as_str) {
        // The flags of all verbs choose the place. Groups are called as their types.
        let is_own = matches.try_contains_id(id).is_err() && !id.starts_with(char::is_uppercase);
        if !is_own || is_said_otherwise(id) {
            continue;
        }
        let flag = format!("--{}", id.replace('_', "-"));
        let is_switch = typed.try_get_one::<bool>(id).is_ok();
        let option = match is_switch {
            true => is_set(typed, id).then(|| format!(" {flag}")),
            false => option(typed, id, &flag),
        };
        options.extend(option.map(|option| (flag, option)));
    }
    options
}

/// The command that `with` runs, if it can be repeated in a line.
pub(super) fn command(typed: &ArgMatches) -> Option<String> {
    let words = values(typed, "command")?;
    let words: Vec<String> = words.iter().map(|word| for_shell(word)).collect();
    let command = words.join(" ");
    (command.len() <= LONGEST_COMMAND && escape(&command) == command).then_some(command)
}

pub(super) fn is_set(matches: &ArgMatches, id: &str) -> bool {
    values(matches, id).is_some() && matches.get_flag(id)
}

/// The names of nodes as typed, each once.
pub(super) fn names(typed: &ArgMatches) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let nodes = values(typed, "nodes").or_else(|| values(typed, "node"));
    for node in nodes.unwrap_or_default() {
        let name = node.rsplit_once('/').map_or(&*node, |(_, name)| name);
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The nodes for the next command: names, or the flag that selects them.
pub(super) fn nodes(typed: &ArgMatches) -> Option<String> {
    let option = |id, flag| option(typed, id, flag).map(|option| option.trim().to_owned());
    let named: Vec<String> = names(typed).iter().map(|name| for_shell(name)).collect();
    (!named.is_empty())
        .then(|| listed(&named))
        .flatten()
        .or_else(|| option("selector", "-l"))
        .or_else(|| option("nodes_from", "--nodes-from").filter(|from| !from.ends_with(" -")))
        .or_else(|| is_set(typed, "all").then(|| "--all".to_owned()))
}

/// `nodes` in one line, unless there are too many.
pub(super) fn listed(nodes: &[String]) -> Option<String> {
    (nodes.len() <= MOST_NODES).then(|| nodes.join(" "))
}
