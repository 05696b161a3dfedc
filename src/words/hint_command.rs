//! The next command of a hint: the same program, cluster and holder, and if it is the same verb, its nodes
//! and reason.

mod repeated_options;

use std::fmt;

use clap::ArgMatches;
use maintenance_lease::NodeLease;
use maintenance_lease::protocol::identity;

use self::repeated_options::{
    command, is_set, listed, names, nodes, option, options, unquoted, values,
};
use crate::text::{escape, for_shell, shown};

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

/// The flags that choose the cluster and the API user, which kubectl has too. Without them and those that
/// impersonate, a pasted command would act elsewhere, or as somebody else.
const PLACE: [(&str, &str); 5] = [
    ("kubeconfig", "--kubeconfig"),
    ("context", "--context"),
    ("cluster", "--cluster"),
    ("server", "-s"),
    ("user", "--user"),
];

/// The flags that impersonate another API user.
const IMPERSONATION: [(&str, &str); 2] = [
    ("impersonate", "--as"),
    ("impersonate_groups", "--as-group"),
];

const REQUEST_TIMEOUT: &str = "--request-timeout";

const TICKET: &str = "--ticket";

/// The verbs that record a ticket beside the reason.
const WITH_TICKET: [&str; 3] = ["acquire", "hold", "with"];

/// kubectl's words for the kind of a Node.
pub(crate) const NODE_KINDS: [&str; 3] = ["node", "nodes", "no"];

/// How this program was run, for the next command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    place: String,
    impersonation: String,
    holder: String,
    verb: String,
    /// `None` if there are too many, or they came from standard input.
    nodes: Option<String>,
    /// The nodes that were named, however many.
    named: Vec<String>,
    reason: Option<String>,
    /// The other options of the verb, each with its flag.
    options: Vec<(String, String)>,
    /// The command behind `--`, or a placeholder.
    command: String,
    /// Whether a hook was typed behind `--`.
    has_hook: bool,
    /// A dry run leads to another one. Empty if it is none.
    dry_run: String,
    waits: bool,
    /// The nodes that follow the value of `-m`, and that value with them.
    unquoted: Option<(Vec<String>, String)>,
    /// The holder of the `with` that this runs under.
    outer: Option<String>,
}

impl Program {
    /// The program, run with `matches`.
    pub(crate) fn new(matches: &ArgMatches) -> Self {
        let typed_of = |flags: &[(&str, &str)]| -> String {
            let flags = flags.iter();
            flags
                .filter_map(|(id, flag)| option(matches, id, flag))
                .collect()
        };
        let (verb, typed) = matches.subcommand().unwrap_or(("", matches));
        let reason = values(typed, "message").and_then(|mut reasons| reasons.pop());
        let mut options = options(matches, typed);
        // Of the flags of all verbs, this one decides which other options are valid.
        let request = option(matches, "request_timeout", REQUEST_TIMEOUT);
        options.extend(request.map(|option| (REQUEST_TIMEOUT.to_owned(), option)));
        Self {
            place: typed_of(&PLACE),
            impersonation: typed_of(&IMPERSONATION),
            holder: option(matches, "holder", "--holder").unwrap_or_default(),
            verb: verb.to_owned(),
            nodes: nodes(typed),
            named: names(typed),
            reason: reason.and_then(|reason| repeatable(&reason)),
            options,
            command: command(typed).unwrap_or_else(|| "COMMAND".to_owned()),
            has_hook: values(typed, "hook").is_some(),
            dry_run: values(typed, "dry_run")
                .and_then(|mut modes| modes.pop())
                .map(|mode| format!(" --dry-run={}", for_shell(&mode)))
                .unwrap_or_default(),
            waits: is_set(typed, "wait"),
            unquoted: unquoted(typed),
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

    /// The same, run by `holder`.
    pub(crate) fn as_holder(&self, holder: &str) -> Self {
        Self {
            holder: format!(" --holder {}", for_shell(holder)),
            ..self.clone()
        }
    }

    /// The same, run by the API user of the kubeconfig, who may be an administrator.
    pub(crate) fn unimpersonated(&self) -> Self {
        Self {
            impersonation: String::new(),
            ..self.clone()
        }
    }

    /// Another verb for the same nodes, with the given reason, else that of `lease`, else a placeholder. A ticket belongs to
    /// the given reason.
    pub(crate) fn of_verb(&self, verb: &str, lease: Option<&NodeLease>) -> Self {
        let reason = lease.and_then(NodeLease::reason).and_then(repeatable);
        let reason = self.reason.clone().or(reason);
        let is_kept =
            |flag: &str| self.verb == verb || (flag == TICKET && WITH_TICKET.contains(&verb));
        let options = self.options.iter().filter(|(flag, _)| is_kept(flag));
        Self {
            verb: verb.to_owned(),
            reason: reason.or(Some(NO_REASON.to_owned())),
            options: options.cloned().collect(),
            dry_run: String::new(),
            ..self.clone()
        }
    }

    /// The same command, with `flag`. It leaves out only what changes the output, and how long to wait.
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
        let replaced = flag.split(' ').next().unwrap_or_default();
        let options = self.options.iter();
        let options = options.filter(|(flag, _)| flag != replaced);
        let options: String = options.map(|(_, option)| option.as_str()).collect();
        let own = self.run(format_args!(
            "{verb} {nodes}{dry_run}{reason}{options}{space}{flag}"
        ));
        match &**verb {
            "with" => format!("{own} -- {}", self.command),
            _ => own,
        }
    }

    /// The same command, with a placeholder for its reason.
    pub(crate) fn with_reason(&self) -> String {
        let program = Self {
            reason: Some(format!("\"{NO_REASON}\"")),
            ..self.clone()
        };
        program.same_command("")
    }

    /// The given nodes, else `node`.
    pub(crate) fn nodes<'a>(&'a self, node: &'a str) -> &'a str {
        self.nodes.as_deref().unwrap_or(node)
    }

    /// Whether the command already names `node`.
    pub(crate) fn names(&self, node: &str) -> bool {
        self.named.iter().any(|named| named == node)
    }

    /// Whether exactly one node was named.
    pub(crate) fn names_one(&self) -> bool {
        self.named.len() == 1
    }

    /// What to type if one of `nodes`, which can't be nodes, belongs to a reason that was not quoted.
    pub(crate) fn unquoted_reason(&self, nodes: &[String]) -> Option<String> {
        let (after, reason) = self.unquoted.as_ref()?;
        let word = nodes.iter().find(|node| after.contains(node))?;
        Some(format!(
            "if \"{}\" belongs to the reason, quote it: -m {}",
            shown(word),
            for_shell(reason)
        ))
    }

    /// The flag of a dry run after a space; empty if it is none.
    pub(crate) fn dry_run(&self) -> &str {
        &self.dry_run
    }

    /// The given reason, quoted for a shell, if it can be repeated.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// The same, else a placeholder.
    pub(crate) fn why(&self) -> &str {
        self.reason().unwrap_or(NO_REASON)
    }

    /// The given ticket, as a flag after a space; empty if there is none.
    pub(crate) fn ticket(&self) -> &str {
        let mut options = self.options.iter();
        let ticket = options.find(|(flag, _)| flag == TICKET);
        ticket.map_or("", |(_, option)| option)
    }

    /// Whether a hook was typed behind `--`.
    pub(crate) fn has_hook(&self) -> bool {
        self.has_hook
    }

    /// The command that was run.
    pub(crate) fn verb(&self) -> &str {
        &self.verb
    }

    /// Whether the option `flag` was given, if [`same_command`](Self::same_command) repeats it.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.options.iter().any(|(given, _)| given == flag)
    }

    /// Whether `--holder` was given.
    pub(crate) fn has_holder(&self) -> bool {
        !self.holder.is_empty()
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
        let (place, impersonation) = (&self.place, &self.impersonation);
        let (holder, rest) = (&self.holder, &command[own.len()..]);
        format!("{NAME} {own}{place}{impersonation}{holder}{rest}")
    }

    /// `command` of kubectl, for the same cluster.
    pub(crate) fn kubectl(&self, command: impl fmt::Display) -> String {
        format!("kubectl {command}{}{}", self.place, self.impersonation)
    }
}

/// A reason, quoted for a shell. One that has to be escaped can't be repeated.
fn repeatable(reason: &str) -> Option<String> {
    (!reason.is_empty() && escape(reason) == reason).then(|| for_shell(reason))
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
        let administrator = "kubectl maint doctor --context prod -s https://h --holder 'it'\\''s'";
        assert_eq!(program.unimpersonated().run("doctor"), administrator);
        let status = run("--token secret status");
        assert_eq!(status.run("doctor"), "kubectl maint doctor");
    }

    #[test]
    fn the_same_command_does_the_same() {
        let acquire =
            run("acquire a node/b a -m it's --duration 1h -o json -q --cordon --opt-outs auto");
        assert_eq!(
            acquire.same_command("--wait"),
            r"kubectl maint acquire a b -m 'it'\''s' --duration 1h --cordon --opt-outs auto --wait"
        );
        assert_eq!(
            acquire.of_verb("hold", None).same_command(""),
            r"kubectl maint hold a b -m 'it'\''s'"
        );
        let until = run("hold a -m x --expect-until 2d --ticket T-1 --context prod");
        assert_eq!(
            until.same_command("--expect-until TIME"),
            "kubectl maint hold a -m x --ticket T-1 --expect-until TIME --context prod"
        );
        let ticket = run("acquire a -m x --duration 1h --ticket T-1");
        assert_eq!(
            ticket.of_verb("hold", None).same_command(""),
            "kubectl maint hold a -m x --ticket T-1"
        );
        assert_eq!(
            ticket.of_verb("release", None).same_command("--force"),
            "kubectl maint release a -m x --force"
        );
        assert_eq!(
            run("--request-timeout 5s with a --grace 2s -- true").same_command("--wait"),
            "kubectl maint with a --grace 2s --request-timeout 5s --wait -- true"
        );
        assert!(!acquire.waits());
        let selected = run("hold -l rack=7,zone!=a -m x --wait");
        assert_eq!(
            selected.same_command(""),
            "kubectl maint hold -l 'rack=7,zone!=a' -m x"
        );
        assert!(selected.waits());
        assert_eq!(
            run("with a --context b -- sudo reboot --at=*").same_command("--wait"),
            r"kubectl maint with a --wait --context b -- sudo reboot '--at=*'"
        );
        let long = "0123456789".repeat(10);
        assert_eq!(
            run(&format!("with a -- {long}")).same_command("--wait"),
            "kubectl maint with a --wait -- COMMAND"
        );
    }

    /// The same command is put together from their names.
    #[test]
    fn options_are_called_as_their_flags() {
        let cli = Cli::command();
        for verb in ["acquire", "hold", "unhold", "renew", "release", "with"] {
            let verb = cli.find_subcommand(verb).expect("a verb");
            let options = verb
                .get_arguments()
                .filter(|it| !repeated_options::is_said_otherwise(it.get_id().as_str()));
            let options = options.filter(|it| !it.is_hide_set());
            for option in options {
                let flag = option.get_id().as_str().replace('_', "-");
                assert_eq!(option.get_long(), Some(&*flag), "{}", verb.get_name());
            }
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
    fn words_after_a_reason_may_belong_to_it() {
        let hint = |line: &str, node: &str| run(line).unquoted_reason(&[node.to_owned()]);
        assert_eq!(
            hint("acquire a -m disk errors again --wait", "again").as_deref(),
            Some(r#"if "again" belongs to the reason, quote it: -m 'disk errors again'"#)
        );
        assert_eq!(hint("acquire a -m disk errors", "a"), None);
        assert_eq!(hint("acquire -m disk --wait a", "a"), None);
        assert_eq!(hint("release a", "a"), None);
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
