//! The next command of a hint: the same program, cluster and holder, and if it is the same verb, its nodes
//! and reason.

use std::ffi::OsStr;
use std::fmt;

use clap::ArgMatches;
use clap::parser::ValueSource;
use maintenance_lease::protocol::identity;

use crate::text::{escape, for_shell};

/// How users run it.
pub(crate) const NAME: &str = "kubectl maint";

/// The name of its file, for use without kubectl.
pub(crate) const FILE: &str = "kubectl-maint";

/// The heading of the connection flags. `options` lists them; the help of other commands does not.
pub(crate) const HEADING: &str = "Connection";

/// The placeholder for the reason in the next command, if none was given.
pub(crate) const NO_REASON: &str = "WHY";

/// The flags that choose the cluster and the API user, which kubectl has too. Without them, a pasted command
/// would act elsewhere, or as somebody else.
const PLACE: [(&str, &str); 7] = [
    ("kubeconfig", "--kubeconfig"),
    ("context", "--context"),
    ("cluster", "--cluster"),
    ("server", "-s"),
    ("user", "--user"),
    ("impersonate", "--as"),
    ("impersonate_groups", "--as-group"),
];

/// kubectl's words for the kind of a Node.
pub(crate) const NODE_KINDS: [&str; 3] = ["node", "nodes", "no"];

/// With more nodes, a line is too long to read.
const MOST_NODES: usize = 10;

/// A longer command of `with`, in characters, makes the line too long to read.
const MOST_OF_COMMAND: usize = 80;

/// How this program was run. Its text is the start of the next command, for the same cluster and the same
/// holder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    place: String,
    holder: String,
    verb: String,
    /// `None` if there are too many, or they came from standard input.
    nodes: Option<String>,
    reason: Option<String>,
    ticket: String,
    /// A dry run leads to another one. Empty if it is none.
    dry_run: String,
    waits: bool,
    /// The command of `with`, quoted for a shell. `None` if it is too long, or can't be repeated.
    command: Option<String>,
    /// The holder of the `with` that this runs under.
    outer: Option<String>,
}

impl Program {
    /// The program, run with `matches`.
    pub(crate) fn new(matches: &ArgMatches) -> Self {
        let place = PLACE
            .into_iter()
            .filter_map(|(id, flag)| option(matches, id, flag));
        let (verb, typed) = matches.subcommand().unwrap_or(("", matches));
        // A reason that has to be escaped can't be repeated.
        let reason = values(typed, "message").and_then(|mut reasons| reasons.pop());
        let reason = reason.filter(|reason| !reason.is_empty() && escape(reason) == *reason);
        Self {
            place: place.collect(),
            holder: option(matches, "holder", "--holder").unwrap_or_default(),
            verb: verb.to_owned(),
            nodes: nodes(typed),
            reason: reason.map(|reason| for_shell(&reason)),
            ticket: option(typed, "ticket", "--ticket").unwrap_or_default(),
            dry_run: values(typed, "dry_run")
                .and_then(|mut modes| modes.pop())
                .map(|mode| format!(" --dry-run={}", for_shell(&mode)))
                .unwrap_or_default(),
            waits: is_set(typed, "wait"),
            command: (verb == "with").then(|| command(typed)).flatten(),
            outer: None,
        }
    }

    /// Sets the holder of the `with` that this runs under, if any.
    pub(crate) fn under(self, holder: Option<&str>) -> Self {
        Self {
            outer: holder.map(ToOwned::to_owned),
            ..self
        }
    }

    /// Whether this runs under the lock of `holder`, which may be a hold.
    pub(crate) fn is_under(&self, holder: &str) -> bool {
        self.outer.as_deref() == Some(identity::person(holder))
    }

    /// The same for `nodes` only, by name.
    pub(crate) fn narrowed(&self, nodes: &[String]) -> Self {
        let mut nodes = nodes.to_vec();
        // Before other names, it would be read as their kind.
        if let [first, _, ..] = &mut nodes[..]
            && NODE_KINDS.contains(&first.as_str())
        {
            first.insert_str(0, "node/");
        }
        Self {
            nodes: listed(&nodes),
            ..self.clone()
        }
    }

    /// The start of a command as `holder`.
    pub(crate) fn as_holder(&self, holder: &str) -> Self {
        Self {
            holder: format!(" --holder {}", for_shell(holder)),
            ..self.clone()
        }
    }

    /// The same verb with `flag`, for the given nodes, else for `node`.
    pub(crate) fn same_command(&self, node: &str, flag: &str) -> String {
        let (verb, nodes) = (&self.verb, self.nodes(node));
        let reason = self.reason.as_ref().map(|reason| format!(" -m {reason}"));
        let flag = match flag {
            "" => String::new(),
            flag => format!(" {flag}"),
        };
        let command = match &**verb {
            "with" => format!(" -- {}", self.command.as_deref().unwrap_or("COMMAND")),
            _ => String::new(),
        };
        // A dry run does not wait.
        let dry_run = match flag.trim() {
            "--wait" => "",
            _ => &self.dry_run,
        };
        format!(
            "{self} {verb} {nodes}{}{}{}{flag}{command}",
            dry_run,
            reason.unwrap_or_default(),
            self.ticket,
        )
    }

    /// The given nodes, else `node`.
    pub(crate) fn nodes<'a>(&'a self, node: &'a str) -> &'a str {
        self.nodes.as_deref().unwrap_or(node)
    }

    /// The flag of a dry run after a space; empty if it is none.
    pub(crate) fn dry_run(&self) -> &str {
        &self.dry_run
    }

    /// The given reason, quoted for a shell.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// The given reason, else a placeholder.
    pub(crate) fn why(&self) -> &str {
        self.reason().unwrap_or(NO_REASON)
    }

    /// Whether `--wait` was given.
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    /// The start of a kubectl command for the same cluster.
    pub(crate) fn kubectl(&self) -> String {
        format!("kubectl{}", self.place)
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, holder, .. } = self;
        write!(f, "{NAME}{place}{holder}")
    }
}

/// The values of an argument, if it was typed. Each verb defines only some.
fn values(matches: &ArgMatches, id: &str) -> Option<Vec<String>> {
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
fn option(matches: &ArgMatches, id: &str, flag: &str) -> Option<String> {
    let values = values(matches, id)?;
    let values = values
        .iter()
        .map(|value| format!(" {flag} {}", for_shell(value)));
    Some(values.collect())
}

fn is_set(matches: &ArgMatches, id: &str) -> bool {
    values(matches, id).is_some() && matches.get_flag(id)
}

/// The nodes as typed, each once.
fn nodes(typed: &ArgMatches) -> Option<String> {
    let option = |id, flag| option(typed, id, flag).map(|option| option.trim().to_owned());
    let named = values(typed, "nodes").and_then(|typed| {
        let mut names: Vec<String> = Vec::new();
        for node in typed {
            let node = for_shell(node.rsplit_once('/').map_or(&node, |(_, name)| name));
            if !names.contains(&node) {
                names.push(node);
            }
        }
        listed(&names)
    });
    named
        .or_else(|| option("selector", "-l"))
        .or_else(|| option("nodes_from", "--nodes-from").filter(|from| !from.ends_with(" -")))
        .or_else(|| is_set(typed, "all").then(|| "--all".to_owned()))
}

/// The command of `with` in one line. Only a part of it would be dangerous to paste.
fn command(typed: &ArgMatches) -> Option<String> {
    let words: Vec<_> = typed.get_raw("command")?.map(OsStr::to_str).collect();
    let words: Option<Vec<&str>> = words.into_iter().collect();
    let words = words?;
    let line: Vec<String> = words.iter().map(|word| for_shell(word)).collect();
    let line = line.join(" ");
    let is_exact = words.iter().all(|word| escape(word) == **word);
    (is_exact && line.chars().count() <= MOST_OF_COMMAND).then_some(line)
}

/// `nodes` in one line, unless there are too many.
fn listed(nodes: &[String]) -> Option<String> {
    (nodes.len() <= MOST_NODES).then(|| nodes.join(" "))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::app::Cli;

    fn run(line: &str) -> Program {
        let line = std::iter::once("kubectl-maint").chain(line.split(' '));
        let matches = Cli::command().try_get_matches_from(line);
        Program::new(&matches.expect("a line"))
    }

    #[test]
    fn a_next_command_goes_to_the_same_cluster_as_the_same_holder() {
        let program = run(
            "--context prod acquire a --holder it's -s https://h -v6 --as dev --as-group a --as-group b",
        );
        let place = "--context prod -s https://h --as dev --as-group a --as-group b";
        assert_eq!(
            program.to_string(),
            format!(r"kubectl maint {place} --holder 'it'\''s'")
        );
        assert_eq!(
            program.as_holder("bob@laptop").to_string(),
            format!("kubectl maint {place} --holder bob@laptop")
        );
        assert_eq!(program.kubectl(), format!("kubectl {place}"));
        assert_eq!(run("--token secret status").to_string(), "kubectl maint");
    }

    #[test]
    fn the_same_verb_has_its_nodes_and_reason_and_nothing_else() {
        let acquire = run("acquire a node/b a -m it's --duration 1h -o json");
        assert_eq!(
            acquire.same_command("a", "--wait"),
            r"kubectl maint acquire a b -m 'it'\''s' --wait"
        );
        assert!(!acquire.waits());
        let selected = run("hold -l rack=7,zone!=a -m x --wait");
        assert_eq!(
            selected.same_command("a", ""),
            "kubectl maint hold -l 'rack=7,zone!=a' -m x"
        );
        assert!(selected.waits());
        assert_eq!(
            run("with a -- sudo $(reboot)").same_command("a", "--wait"),
            "kubectl maint with a --wait -- sudo '$(reboot)'"
        );
        for hidden in ["x".repeat(81), "a\u{1b}b".to_owned()] {
            assert_eq!(
                run(&format!("with a -- {hidden}")).same_command("a", "--wait"),
                "kubectl maint with a --wait -- COMMAND"
            );
        }
    }

    #[test]
    fn hints_name_some_nodes_for_every_kind_of_selection() {
        let some = |line: &str, nodes: &[&str]| {
            let nodes: Vec<String> = nodes.iter().map(|&node| node.to_owned()).collect();
            run(line).narrowed(&nodes).nodes("NODE...").to_owned()
        };
        assert_eq!(some("acquire a b c -m x", &["b"]), "b");
        assert_eq!(some("acquire -l pool=gpu", &["a", "b"]), "a b");
        assert_eq!(some("acquire --all", &["a"; 11]), "NODE...");
    }

    #[test]
    fn what_cannot_be_repeated_is_left_out() {
        assert_eq!(run("acquire 0 1 2 3 4 5 6 7 8 9 10").nodes("3"), "3");
        assert_eq!(run("acquire --nodes-from -").nodes("a"), "a");
        assert_eq!(run("status").why(), "WHY");
        assert_eq!(run("acquire a -m=").why(), "WHY");
        assert_eq!(run("acquire a -m=one\ntwo").why(), "WHY");
    }
}
