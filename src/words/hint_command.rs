//! Commands in hints: for the same cluster and holder, often with the nodes and reason that were typed.

use std::fmt;

use crate::platform::is_quotable;
use clap::ArgMatches;
use clap::parser::ValueSource;
use maintenance_lease::NodeLease;
use maintenance_lease::protocol::identity;

use crate::object::{self, Kind};
use crate::text::{escape, for_shell};

/// How users run it.
pub(crate) const NAME: &str = "kubectl maint";

/// The name of its file, for use without kubectl.
pub(crate) const FILE: &str = "kubectl-maint";

/// The heading of the connection flags. `options` lists them; the help of other commands does not.
pub(crate) const HEADING: &str = "Connection";

/// The placeholder for the reason in the next command, if none was given.
pub(crate) const NO_REASON: &str = "WHY";

/// The placeholder for how the operator knows that a node is off.
pub(crate) const NO_PROOF: &str = "HOW YOU KNOW";

/// The placeholder for nodes that can't be named in one line.
pub(crate) const MANY: &str = "NODE...";

/// How a command ends that runs a hook.
const HOOK: &str = " -- HOOK";

/// With more nodes, a line is too long to read.
const MOST_NODES: usize = 10;

/// The flags that choose the cluster and the API user, which kubectl has too. Without them, a pasted command
/// would act elsewhere, or as somebody else.
const CONNECTION: [(&str, &str); 7] = [
    ("kubeconfig", "--kubeconfig"),
    ("context", "--context"),
    ("cluster", "--cluster"),
    ("server", "-s"),
    ("user", "--user"),
    ("impersonate", "--as"),
    ("impersonate_groups", "--as-group"),
];

/// The options that [`Program::same_command`] repeats, or that do not change what a command does.
const REPEATED: [&str; 15] = [
    "all",
    "command",
    "dry_run",
    "format",
    "holder",
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

/// How this program was run, for the next command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    connection: String,
    holder: String,
    /// Whether that is another holder than the one that was used.
    is_other_holder: bool,
    verb: String,
    /// Whether options were typed that [`Self::same_command`] leaves out.
    has_more: bool,
    /// Whether this is for only some of the nodes.
    is_narrowed: bool,
    /// `None` if there are too many, or they came from standard input.
    nodes: Option<String>,
    /// The nodes that were named, however many.
    named: Vec<String>,
    reason: Option<String>,
    /// Whether `-m` was typed.
    has_reason: bool,
    /// The option with the ticket, after a space. Empty if there is none.
    ticket: String,
    /// Whether a hook was typed behind `--`.
    has_hook: bool,
    /// A dry run leads to another one. Empty if it is none.
    dry_run: String,
    waits: bool,
    takes_over: bool,
    /// More flags for the same command, each after a space.
    also: String,
    /// The holder of the `with` that this runs under.
    outer: Option<String>,
}

impl Program {
    /// The program, run with `matches`.
    pub(crate) fn new(matches: &ArgMatches) -> Self {
        let (verb, typed) = matches.subcommand().unwrap_or(("", matches));
        let connection = CONNECTION.iter();
        let connection = connection.filter_map(|(id, flag)| option(matches, id, flag));
        let reason = values(typed, "message").and_then(|mut reasons| reasons.pop());
        let has_reason = reason.is_some();
        let reason = reason.and_then(|reason| repeatable(&reason));
        let named = names(typed);
        Self {
            connection: connection.collect(),
            holder: option(matches, "holder", "--holder").unwrap_or_default(),
            is_other_holder: false,
            verb: verb.to_owned(),
            // A reason that cannot be repeated would be missing.
            has_more: has_more(matches, typed) || (has_reason && reason.is_none()),
            has_reason,
            is_narrowed: false,
            nodes: nodes(typed, &named),
            named,
            reason,
            ticket: option(typed, "ticket", "--ticket").unwrap_or_default(),
            has_hook: values(typed, "hook").is_some(),
            dry_run: match values(typed, "dry_run") {
                Some(_) => " --dry-run".to_owned(),
                None => String::new(),
            },
            waits: values(typed, "wait").is_some(),
            takes_over: values(typed, "take_over").is_some(),
            also: String::new(),
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
            && Kind::of(first) == Some(Kind::Node)
        {
            first.insert_str(0, "node/");
        }
        Self {
            is_narrowed: self.is_narrowed || nodes != self.named,
            nodes: listed(&nodes),
            ..self.clone()
        }
    }

    /// The same, run by `holder`.
    pub(crate) fn as_holder(&self, holder: &str) -> Self {
        Self {
            holder: format!(" --holder {}", for_shell(holder)),
            is_other_holder: true,
            ..self.clone()
        }
    }

    /// The same, with `flags` after the one that a hint adds to the same command.
    pub(crate) fn adding(&self, flags: &[&str]) -> Self {
        Self {
            also: flags.iter().map(|flag| format!(" {flag}")).collect(),
            ..self.clone()
        }
    }

    /// Another verb for the same nodes, with the given reason, else that of `lease`, else a placeholder.
    pub(crate) fn of_verb(&self, verb: &str, lease: Option<&NodeLease>) -> Self {
        let reason = lease.and_then(NodeLease::reason).and_then(repeatable);
        let reason = self.reason.clone().or(reason);
        let ticket = lease.and_then(NodeLease::ticket).and_then(repeatable);
        let ticket = ticket.map(|ticket| format!(" --ticket {ticket}"));
        Self {
            has_more: self.has_more && self.verb == verb,
            ticket: match &*self.ticket {
                "" => ticket.unwrap_or_default(),
                typed => typed.to_owned(),
            },
            verb: verb.to_owned(),
            reason: reason.or(Some(NO_REASON.to_owned())),
            ..self.clone()
        }
    }

    /// How to do something by the same verb with `flag`, such as "with `…`". If that command would lack other options that
    /// were typed, it says only what to add.
    pub(crate) fn with(&self, flag: &str) -> String {
        let flag = &format!("{flag}{}", self.also);
        if !self.has_more {
            return format!("with `{}`", self.same_command(flag));
        }
        let holder = if self.is_other_holder {
            &*self.holder
        } else {
            ""
        };
        let flags = format!("{flag}{holder}");
        let place = self.place_of_flags();
        let only = self.is_narrowed.then(|| self.nodes("these nodes"));
        match (flags.trim(), only) {
            ("", None) => "by running the command again".to_owned(),
            ("", Some(nodes)) => format!("by running the command again for {nodes} only"),
            (flags, None) => format!("by adding `{flags}`{place}"),
            (flags, Some(nodes)) => format!("by naming only {nodes} and adding `{flags}`{place}"),
        }
    }

    /// The same verb with `flag`, for the same nodes and reason.
    pub(crate) fn same_command(&self, flag: &str) -> String {
        let (verb, nodes) = (&self.verb, self.nodes(MANY));
        let reason = self.reason.as_ref().map(|reason| format!(" -m {reason}"));
        let reason = reason.unwrap_or_default();
        // A dry run does not wait.
        let dry_run = match flag {
            "--wait" => "",
            _ => &self.dry_run,
        };
        let space = if flag.is_empty() { "" } else { " " };
        let command = if verb == "with" { " -- COMMAND" } else { "" };
        // Without --ticket, `hold` would remove the ticket.
        let ticket = if verb == "hold" { &*self.ticket } else { "" };
        let own = self.run(format_args!(
            "{verb} {nodes}{dry_run}{reason}{ticket}{space}{flag}"
        ));
        format!("{own}{command}")
    }

    /// The given nodes, else `node`.
    pub(crate) fn nodes<'a>(&'a self, node: &'a str) -> &'a str {
        self.nodes.as_deref().unwrap_or(node)
    }

    /// Whether the nodes can be given as they were.
    pub(crate) fn repeats_nodes(&self) -> bool {
        self.nodes.is_some()
    }

    /// Whether the command already names `node`.
    pub(crate) fn names(&self, node: &str) -> bool {
        self.named.iter().any(|named| named == node)
    }

    /// Whether exactly one node was named.
    pub(crate) fn names_one(&self) -> bool {
        self.named.len() == 1
    }

    /// The flag of a dry run after a space; empty if it is none.
    pub(crate) fn dry_run(&self) -> &str {
        &self.dry_run
    }

    /// The given reason, quoted for a shell, if it can be repeated.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Whether a reason was given, even if it cannot be repeated.
    pub(crate) fn has_reason(&self) -> bool {
        self.has_reason
    }

    /// The given ticket as an option after a space; empty if there is none.
    pub(crate) fn ticket(&self) -> &str {
        &self.ticket
    }

    /// The given reason, else a placeholder.
    pub(crate) fn why(&self) -> &str {
        self.reason().unwrap_or(NO_REASON)
    }

    /// Where to add flags, after a space: behind `--`, they would be arguments of the hook or of the command of `with`.
    pub(crate) fn place_of_flags(&self) -> &'static str {
        match self.has_hook || self.verb == "with" {
            true => " before `--`",
            false => "",
        }
    }

    /// Whether a hook was typed behind `--`.
    pub(crate) fn has_hook(&self) -> bool {
        self.has_hook
    }

    /// The command that was run.
    pub(crate) fn verb(&self) -> &str {
        &self.verb
    }

    /// Whether `--take-over` was given.
    pub(crate) fn takes_over(&self) -> bool {
        self.takes_over
    }

    /// Whether `--wait` was given.
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    /// `command` of this program, for the same cluster and the same holder.
    pub(crate) fn run(&self, command: impl fmt::Display) -> String {
        let command = command.to_string();
        // The flags of this program come before the hook.
        let own = command.strip_suffix(HOOK).unwrap_or(&command);
        let (connection, holder, hook) = (&self.connection, &self.holder, &command[own.len()..]);
        format!("{NAME} {own}{connection}{holder}{hook}")
    }

    /// `command` of kubectl, for the same cluster.
    pub(crate) fn kubectl(&self, command: impl fmt::Display) -> String {
        format!("kubectl {command}{}", self.connection)
    }
}

/// A reason, quoted for a shell. One that would become another reason can't be repeated.
fn repeatable(reason: &str) -> Option<String> {
    let is_kept = !reason.is_empty()
        // A leading `-` would be read as a flag.
        && !reason.starts_with('-')
        && escape(reason) == reason
        && is_quotable(reason);
    is_kept.then(|| for_shell(reason))
}

/// The values of an argument, if it was typed. Each verb defines only some.
fn values(matches: &ArgMatches, id: &str) -> Option<Vec<String>> {
    let values = matches.try_get_raw(id).ok().flatten()?;
    let values = values.map(|value| value.to_string_lossy().into_owned());
    let is_typed = matches.value_source(id) == Some(ValueSource::CommandLine);
    is_typed.then(|| values.collect())
}

/// An option after a space, with each of its values.
fn option(matches: &ArgMatches, id: &str, flag: &str) -> Option<String> {
    let values = values(matches, id)?;
    let values = values.iter().map(|value| {
        // Otherwise such a value would be read as a flag.
        let is_flag = value.starts_with('-') && value != "-";
        let separator = if is_flag { '=' } else { ' ' };
        format!(" {flag}{separator}{}", for_shell(value))
    });
    Some(values.collect())
}

/// Whether options of the verb were typed that are not [`REPEATED`].
fn has_more(matches: &ArgMatches, typed: &ArgMatches) -> bool {
    typed.ids().map(clap::Id::as_str).any(|id| {
        // The flags of all verbs are known to `matches` too. Groups are called as their types.
        let is_own = matches.try_contains_id(id).is_err() && !id.starts_with(char::is_uppercase);
        is_own && !REPEATED.contains(&id) && values(typed, id).is_some()
    })
}

/// The names of nodes as typed, each once.
fn names(typed: &ArgMatches) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let nodes = values(typed, "nodes").or_else(|| values(typed, "node"));
    for node in nodes.unwrap_or_default() {
        let name = object::name(&node);
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The nodes for the next command: those `named`, or the flag that selects them.
fn nodes(typed: &ArgMatches, named: &[String]) -> Option<String> {
    if !named.is_empty() {
        let quoted: Vec<String> = named.iter().map(|name| for_shell(name)).collect();
        return listed(&quoted);
    }
    let option = |id, flag| option(typed, id, flag).map(|option| option.trim().to_owned());
    option("selector", "-l")
        .or_else(|| option("nodes_from", "--nodes-from").filter(|from| !from.ends_with(" -")))
        .or_else(|| values(typed, "all").map(|_| "--all".to_owned()))
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
            program.run("renew a"),
            format!(r"kubectl maint renew a {place} --holder 'it'\''s'")
        );
        assert_eq!(
            program.as_holder("bob@laptop").run("fence a -- HOOK"),
            format!("kubectl maint fence a {place} --holder bob@laptop -- HOOK")
        );
        assert_eq!(
            program.kubectl("get nodes"),
            format!("kubectl get nodes {place}")
        );
        let status = run("--token secret status");
        assert_eq!(status.run("doctor"), "kubectl maint doctor");
    }

    #[test]
    fn the_same_command_has_the_nodes_and_the_reason_and_no_other_options() {
        let acquire = run("acquire a node/b a -m it's --duration 1h --cordon --ticket T-1 -q");
        assert_eq!(
            acquire.same_command("--wait"),
            r"kubectl maint acquire a b -m 'it'\''s' --wait"
        );
        assert_eq!(
            acquire.of_verb("hold", None).same_command(""),
            r"kubectl maint hold a b -m 'it'\''s' --ticket T-1"
        );
        assert!(!acquire.waits());
        let selected = run("hold -l rack=7,zone!=a -m x --wait --context prod");
        assert_eq!(
            selected.same_command(""),
            "kubectl maint hold -l 'rack=7,zone!=a' -m x --context prod"
        );
        assert!(selected.waits());
        assert_eq!(
            run("with a --grace 2s --context b -- sudo reboot").same_command("--wait"),
            "kubectl maint with a --wait --context b -- COMMAND"
        );
    }

    #[test]
    fn options_that_a_command_would_lack_are_kept_by_saying_what_to_add() {
        let plain = run("acquire a b -m x -q --context prod");
        assert_eq!(
            plain.with("--wait"),
            "with `kubectl maint acquire a b -m x --wait --context prod`"
        );
        assert_eq!(
            plain.with(""),
            "with `kubectl maint acquire a b -m x --context prod`"
        );
        let cordon = run("acquire a b -m x --cordon");
        assert_eq!(cordon.with("--wait"), "by adding `--wait`");
        assert_eq!(cordon.with(""), "by running the command again");
        let one = cordon.narrowed(&["b".to_owned()]);
        assert_eq!(one.with("--wait"), "by naming only b and adding `--wait`");
        assert_eq!(one.with(""), "by running the command again for b only");
        let other = cordon.as_holder("bob");
        assert_eq!(
            other.with("--reentry"),
            "by adding `--reentry --holder bob`"
        );
        assert_eq!(other.with(""), "by adding `--holder bob`");
        let hold = cordon.of_verb("hold", None);
        assert_eq!(hold.with(""), "with `kubectl maint hold a b -m x`");
    }

    #[test]
    fn options_are_added_before_the_command_of_with() {
        let with = run("with a --lease-duration 5m -- ./job");
        assert_eq!(with.with("--wait"), "by adding `--wait` before `--`");
    }

    #[test]
    fn a_dry_run_leads_to_another_one() {
        let dry_run = run("acquire a --dry-run");
        assert_eq!(
            dry_run.same_command("--take-expired"),
            "kubectl maint acquire a --dry-run --take-expired"
        );
        assert_eq!(
            dry_run.adding(&["--wait"]).with("--take-expired"),
            "with `kubectl maint acquire a --dry-run --take-expired --wait`"
        );
        assert_eq!(
            dry_run.same_command("--wait"),
            "kubectl maint acquire a --wait"
        );
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
    fn text_that_cannot_be_repeated_is_left_out() {
        assert_eq!(run("acquire 0 1 2 3 4 5 6 7 8 9 10").nodes("3"), "3");
        assert_eq!(run("acquire --nodes-from -").nodes("a"), "a");
        assert_eq!(run("status").why(), "WHY");
        assert_eq!(run("acquire a -m=").why(), "WHY");
        assert_eq!(run("acquire a -m=one\ntwo").why(), "WHY");
    }
}
