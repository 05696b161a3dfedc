//! The command line as typed, to build the next command.

use std::collections::HashSet;
use std::ffi::OsStr;

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::text::{escape, for_shell};

/// The placeholder for the reason in the next command, if none was given.
pub(crate) const NO_REASON: &str = "WHY";

/// The options of verbs that the next command of the same kind repeats if they were typed. Each is written
/// as it precedes its value.
const OPTIONS: [(&str, &str); 11] = [
    ("message", "-m "),
    ("duration", "--duration "),
    ("until", "--until "),
    ("lease_duration", "--lease-duration "),
    ("grace", "--grace "),
    ("conflict_exit_code", "-E "),
    ("lost_exit_code", "--lost-exit-code "),
    ("powered_off", "--powered-off="),
    ("accept_risk", "--accept-risk="),
    ("overridden", "--accept-risk="),
    ("hook_timeout", "--hook-timeout="),
];
const SWITCHES: [(&str, &str); 3] = [
    ("reentry", "--reentry"),
    ("free_only", "--free-only"),
    ("isolated", "--isolated"),
];

/// Further options and switches, for a line that repeats the whole command. Each is written as it precedes
/// its value.
const REST: [(&str, &str); 6] = [
    ("request_timeout", "--request-timeout "),
    ("timeout", "--timeout "),
    ("dry_run", "--dry-run="),
    ("field_manager", "--field-manager "),
    ("format", "-o "),
    ("verbosity", "--v="),
];

/// With more nodes, a line is too long to read.
const MOST_NODES: usize = 10;

/// What a verb runs, its placeholder if it can't be repeated, and its longest length in characters: a
/// longer command is not read. A hook may be longer, because it is pasted under time pressure.
const RUN: [(&str, &str, usize); 2] = [("command", "COMMAND", 60), ("hook", "HOOK", 200)];

/// A verb that was typed, with its nodes and options.
#[derive(Clone, Debug, Default)]
pub(crate) struct Again {
    verb: String,
    /// `None` if there are too many, or they came from standard input.
    nodes: Option<String>,
    options: String,
    rest: String,
    why: Option<String>,
    /// Whether a reason was given, even one that can't be repeated.
    has_reason: bool,
    /// What the verb runs: the command of `with`, or a hook.
    command: Option<String>,
    waits: bool,
}

impl Again {
    /// Collects what was typed after the verb.
    pub(crate) fn new(matches: &ArgMatches) -> Self {
        let Some((verb, of_verb)) = matches.subcommand() else {
            return Self::default();
        };
        let typed = Typed(of_verb);
        let options = OPTIONS
            .into_iter()
            .filter_map(|option| typed.option(option));
        let switches = SWITCHES.into_iter();
        let switches = switches.filter(|(id, _)| typed.is_set(id));
        let rest = REST.into_iter().filter_map(|option| typed.option(option));
        let mut rest: String = rest.collect();
        if typed.is_set("quiet") {
            rest.push_str(" -q");
        }
        // The user who pastes the line must not act as somebody else, and the token is a secret.
        if typed.is_typed("token") || Typed(matches).is_typed("token") {
            rest.push_str(" --lock-id ID");
        }
        Self {
            verb: verb.to_owned(),
            nodes: typed.nodes(),
            options: options
                .chain(switches.map(|(_, flag)| format!(" {flag}")))
                .collect(),
            rest,
            why: typed.reason(),
            has_reason: typed.is_typed("message"),
            command: typed.run(),
            waits: typed.is_set("wait"),
        }
    }

    /// The same for `nodes` only, by name.
    pub(crate) fn narrowed(&self, nodes: &[String]) -> Self {
        Self {
            nodes: listed(nodes),
            ..self.clone()
        }
    }

    /// The command again, with `flag`, for the given nodes, else for `node`.
    pub(crate) fn line(&self, node: &str, flag: &str) -> String {
        self.with_rest(node, flag, "")
    }

    /// The whole command again, with `flag`. A confirmation flag is left out, because it answered an
    /// earlier report.
    pub(crate) fn whole(&self, node: &str, flag: &str) -> String {
        self.with_rest(node, flag, &self.rest)
    }

    fn with_rest(&self, node: &str, flag: &str, rest: &str) -> String {
        let Self { verb, options, .. } = self;
        let nodes = self.nodes(node);
        let is_there = flag.is_empty() || options.split(' ').any(|option| option == flag);
        let flag = if is_there {
            String::new()
        } else {
            format!(" {flag}")
        };
        let command = self.command.as_deref();
        let command = command.map(|command| format!(" -- {command}"));
        format!(
            "{verb} {nodes}{options}{rest}{flag}{}",
            command.unwrap_or_default()
        )
    }

    /// The other options, for a line that repeats the whole command. Each follows a space.
    pub(crate) fn rest(&self) -> &str {
        &self.rest
    }

    /// The given nodes, else `node`.
    pub(crate) fn nodes<'a>(&'a self, node: &'a str) -> &'a str {
        self.nodes.as_deref().unwrap_or(node)
    }

    /// The given reason, else a placeholder.
    pub(crate) fn why(&self) -> &str {
        self.why.as_deref().unwrap_or(NO_REASON)
    }

    /// Whether a reason was given.
    pub(crate) fn has_reason(&self) -> bool {
        self.has_reason
    }

    /// The name of the verb; empty if there was none.
    pub(crate) fn verb(&self) -> &str {
        &self.verb
    }

    /// Whether `--wait` was given.
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }
}

/// The arguments of a verb. Each verb defines only some of them.
struct Typed<'a>(&'a ArgMatches);

impl Typed<'_> {
    fn is_typed(&self, id: &str) -> bool {
        self.0.try_contains_id(id).unwrap_or(false)
            && self.0.value_source(id) == Some(ValueSource::CommandLine)
    }

    /// The values of an argument, quoted for a shell.
    fn values(&self, id: &str) -> Option<Vec<String>> {
        let is_typed = self.is_typed(id);
        let values = is_typed.then(|| self.0.get_raw(id)).flatten()?;
        Some(
            values
                .map(|value| for_shell(&value.to_string_lossy()))
                .collect(),
        )
    }

    /// An option as typed, with all its values, each after a space.
    fn option(&self, (id, flag): (&str, &str)) -> Option<String> {
        let values = self.values(id)?.into_iter();
        Some(values.map(|value| format!(" {flag}{value}")).collect())
    }

    /// What the verb runs, or a placeholder.
    fn run(&self) -> Option<String> {
        RUN.into_iter().find_map(|(id, word, longest)| {
            let line = self.values(id)?.join(" ");
            let is_short = line.chars().count() <= longest;
            Some(match is_short && self.is_plain(id) {
                true => line,
                false => word.to_owned(),
            })
        })
    }

    /// Whether all values of an argument are text that can be shown unchanged.
    fn is_plain(&self, id: &str) -> bool {
        let values = self.0.get_raw(id).into_iter().flatten();
        values
            .map(OsStr::to_str)
            .all(|value| value.is_some_and(|value| escape(value) == value))
    }

    /// A reason that can be repeated unchanged.
    fn reason(&self) -> Option<String> {
        let typed = self.is_typed("message");
        let reason = typed.then(|| self.0.get_one::<String>("message"));
        let reason = reason.flatten().filter(|reason| !reason.is_empty())?;
        (escape(reason) == *reason).then(|| for_shell(reason))
    }

    fn is_set(&self, id: &str) -> bool {
        self.is_typed(id) && self.0.try_get_one::<bool>(id).ok().flatten() == Some(&true)
    }

    fn nodes(&self) -> Option<String> {
        let one = |id, flag| Some(format!("{flag} {}", self.values(id)?.pop()?));
        let named = self.values("nodes").map(|mut nodes| {
            let mut met = HashSet::new();
            nodes.retain(|node| met.insert(name(node).to_owned()));
            nodes
        });
        named
            .and_then(|nodes| listed(&nodes))
            .or_else(|| one("selector", "-l"))
            .or_else(|| one("nodes_from", "--nodes-from").filter(|from| !from.ends_with(" -")))
            .or_else(|| self.is_set("all").then(|| "--all".to_owned()))
    }
}

/// `nodes` in one line, unless there are too many.
fn listed(nodes: &[String]) -> Option<String> {
    (nodes.len() <= MOST_NODES).then(|| nodes.join(" "))
}

/// The name of a node that was typed as `NAME` or `node/NAME`.
fn name(node: &str) -> &str {
    node.rsplit_once('/').map_or(node, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::app::Cli;

    fn again(line: &str) -> Again {
        let line = std::iter::once("kubectl-maint").chain(line.split(' '));
        let matches = Cli::command().try_get_matches_from(line);
        Again::new(&matches.expect("a line"))
    }

    #[test]
    fn nodes_and_options_are_repeated() {
        let acquire = again("--context prod acquire a node/b -m it's --duration 1h -o json -v6");
        assert_eq!(
            acquire.line("a", "--wait"),
            r"acquire a node/b -m 'it'\''s' --duration 1h --wait"
        );
        assert_eq!(acquire.why(), r"'it'\''s'");
        assert!(!acquire.waits());
        let selected = again("hold -l rack=7,zone!=a -m x --wait");
        assert_eq!(selected.line("a", ""), "hold -l 'rack=7,zone!=a' -m x");
        assert!(selected.waits());
        let with = again("with a --reentry -- ssh a sudo $(reboot)");
        assert_eq!(
            with.line("a", "--wait"),
            "with a --reentry --wait -- ssh a sudo '$(reboot)'"
        );
    }

    #[test]
    fn the_same_command_is_done_and_printed_as_before() {
        let asked = again(
            "--token secret force-delete pod/a --dry-run -o yaml -q --timeout 0 --v=6 --request-timeout 5s",
        );
        assert_eq!(
            asked.rest(),
            " --request-timeout 5s --timeout 0 --dry-run=client -o yaml --v=6 -q --lock-id ID"
        );
        assert_eq!(again("force-delete pod/a -m why").rest(), "");
    }

    #[test]
    fn a_flag_is_given_once() {
        let with = again("with a --reentry -- bash");
        assert_eq!(with.line("a", "--reentry"), "with a --reentry -- bash");
    }

    #[test]
    fn a_node_that_was_named_twice_stands_there_once() {
        let twice = again("acquire a b node/a b c");
        assert_eq!(twice.line("a", ""), "acquire a b c");
    }

    #[test]
    fn some_of_the_nodes_are_named_whatever_way_they_were_given() {
        let some = |line: &str, nodes: &[&str]| {
            let nodes: Vec<String> = nodes.iter().map(|&node| node.to_owned()).collect();
            again(line).narrowed(&nodes).line("NODE...", "")
        };
        assert_eq!(some("acquire a b c -m x", &["b"]), "acquire b -m x");
        assert_eq!(some("acquire -l pool=gpu", &["a", "b"]), "acquire a b");
        assert_eq!(some("acquire --all", &["a"; 11]), "acquire NODE...");
    }

    #[test]
    fn what_nobody_would_read_is_left_away() {
        let many = "acquire 0 1 2 3 4 5 6 7 8 9 10";
        assert_eq!(again(many).line("3", ""), "acquire 3");
        assert_eq!(again("acquire --nodes-from -").line("a", ""), "acquire a");
        assert_eq!(again("status").why(), "WHY");
        assert_eq!(again("acquire a -m=").why(), "WHY");
        let long = format!("with a -- echo {}", "x".repeat(100));
        assert_eq!(again(&long).line("a", ""), "with a -- COMMAND");
    }

    #[test]
    fn a_fencing_is_repeated_with_its_proof_and_doubts() {
        let asked = again(
            "fence a -m it's --override=mass-loss --accept-risk=zone-unknown --isolated --hook-timeout=1m -o json \
             --timeout=0 -- ./cut-off $PORT",
        );
        assert_eq!(
            asked.whole("a", "--resume=3f9a"),
            r"fence a -m 'it'\''s' --accept-risk=zone-unknown --accept-risk=mass-loss --hook-timeout=1m --isolated --timeout 0 -o json --resume=3f9a -- ./cut-off '$PORT'"
        );
        let by_word = again("fence a --powered-off=dark");
        assert_eq!(by_word.whole("a", ""), "fence a --powered-off=dark");
        let asked = again("unfence a --yes --resume=3f9a");
        assert_eq!(asked.whole("a", ""), "unfence a");
    }

    /// Escaping characters of a script would change it.
    #[test]
    fn a_hook_is_repeated_as_it_is_or_not_at_all() {
        let long = format!("fence a -- ./off {}", "x".repeat(100));
        assert_eq!(again(&long).whole("a", ""), long);
        let longer = format!("fence a -- ./off {}", "x".repeat(200));
        assert_eq!(again(&longer).whole("a", ""), "fence a -- HOOK");
        let lines = again("fence a -- sh -c one\ntwo");
        assert_eq!(lines.whole("a", ""), "fence a -- HOOK");
    }
}
