//! Completion at the shell prompt: verbs, flags and their values from the argument definitions, nodes from
//! the cluster.
//!
//! There are two entry points. kubectl runs this program under the name `kubectl_complete-maint`, with the
//! words that follow `kubectl maint`. The script that `completion` prints runs it with [`VARIABLE`] set.
//! After an error the answer is shorter and nothing is printed, because a message would land in the middle
//! of a half-typed line.

mod live;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, complete};
use clap_complete::env::Shells;
use connect::{Environment, KubeconfigNames};
use pod_safety::checks::RISKS;
use pod_safety::consent::NONE;

use crate::commands::completion::VARIABLE;

/// The prefix that kubectl adds to the name of a plugin for completion.
const COMPLETER: &str = "kubectl_complete-";

/// Holds the index of the word under the cursor, in the scripts of shells that pass on the words after it
/// too.
const INDEX: &str = "_CLAP_COMPLETE_INDEX";

/// cobra's directives: what a shell does with the candidates.
const FILES: u8 = 0;
const NO_FILES: u8 = 4;
const NO_SPACE: u8 = 2;

/// A request for completions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    client: Client,
    /// The command line: the command and its arguments. The last word, or the one under the cursor, is
    /// incomplete.
    words: Vec<OsString>,
    /// The index of the word under the cursor.
    cursor: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Client {
    Kubectl,
    Shell(String),
}

impl Question {
    /// The completion request that these arguments mean; `None` if this is a normal run.
    pub(crate) fn of(arguments: Vec<OsString>, environment: &Environment) -> Option<Self> {
        let name = arguments.first().map(Path::new).and_then(Path::file_name);
        if name.is_some_and(|name| name.to_string_lossy().starts_with(COMPLETER)) {
            return Some(Self {
                client: Client::Kubectl,
                cursor: arguments.len() - 1,
                words: arguments,
            });
        }
        let shell = environment.get_os(VARIABLE)?.to_string_lossy().into_owned();
        let mut words = arguments.into_iter().skip(1);
        if words.next()? != "--" {
            return None;
        }
        let words: Vec<OsString> = words.collect();
        let index = environment.get(INDEX).and_then(|index| index.parse().ok());
        Some(Self {
            client: Client::Shell(shell),
            cursor: index.unwrap_or(words.len().saturating_sub(1)),
            words,
        })
    }

    fn of_this_process() -> Option<Self> {
        Self::of(
            std::env::args_os().collect(),
            &Environment::of_this_process(),
        )
    }

    /// The candidates for a command line of this `definition`, in the format of the calling shell.
    pub(crate) fn answer(self, definition: fn() -> Command) -> Vec<u8> {
        let is_foreign = self.is_of_another_program(definition);
        let mut command = match is_foreign {
            true => paths(),
            false => completing(definition, &self.words),
        };
        let here = std::env::current_dir().ok();
        match self.client {
            Client::Kubectl if is_foreign => format!(":{FILES}\n").into_bytes(),
            Client::Kubectl => {
                let typed = self.words[self.cursor].to_string_lossy().into_owned();
                let candidates = complete(&mut command, self.words, self.cursor, here.as_deref());
                for_kubectl(&candidates.unwrap_or_default(), &typed).into_bytes()
            }
            Client::Shell(shell) => {
                let mut text = Vec::new();
                if let Some(shell) = Shells::builtins().completer(&shell)
                    && !self.words.is_empty()
                    && shell
                        .write_complete(&mut command, self.words, here.as_deref(), &mut text)
                        .is_err()
                {
                    text.clear();
                }
                text
            }
        }
    }

    /// Whether the word under the cursor belongs to the command that the verb runs: it follows the `--`.
    fn is_of_another_program(&self, definition: fn() -> Command) -> bool {
        let mut before = self.words.iter().take(self.cursor);
        let Some(dashes) = before.position(|word| word == "--") else {
            return false;
        };
        let command = definition();
        let read = command.clone().ignore_errors(true);
        let Ok(matches) = read.try_get_matches_from(&self.words[..dashes]) else {
            return false;
        };
        matches
            .subcommand_name()
            .and_then(|verb| command.find_subcommand(verb))
            .is_some_and(|verb| verb.get_positionals().any(Arg::is_last_set))
    }
}

/// The argument definitions, adapted to complete these words.
fn completing(definition: fn() -> Command, words: &[OsString]) -> Command {
    let mut command = definition().mut_subcommands(|verb| {
        verb.mut_args(|arg| match arg.get_id().as_str() {
            "node" | "nodes" => arg.add(nodes(definition)),
            "targets" | "object" => arg.add(targets(definition)),
            "opt_outs" => arg.add(ArgValueCompleter::new(opt_outs)),
            // Of other verbs, the definition lists the values.
            "accept_risk" if arg.get_possible_values().is_empty() => {
                arg.add(ArgValueCompleter::new(risks))
            }
            _ => arg,
        })
    });
    command = command.mut_args(|arg| match arg.get_id().as_str() {
        "context" => arg.add(of_kubeconfig(definition, |names| names.contexts)),
        "cluster" => arg.add(of_kubeconfig(definition, |names| names.clusters)),
        "user" => arg.add(of_kubeconfig(definition, |names| names.users)),
        _ => arg,
    });
    command.build();
    adapt(command, words)
}

/// A definition in which every word is a path, because the arguments of other programs are unknown.
fn paths() -> Command {
    let here = std::env::current_dir().ok();
    let paths = PathCompleter::any().filter(move |path| Some(path) != here.as_deref());
    Command::new("paths").arg(
        Arg::new("path")
            .num_args(0..)
            .add(ArgValueCompleter::new(paths)),
    )
}

/// Before the first letter of a word, a flag is offered only if nothing else can follow. A flag that takes
/// its value only after `=` does not take the next word as its value.
fn adapt(command: Command, words: &[OsString]) -> Command {
    let flags_last = words.last().is_none_or(|word| word.is_empty());
    let is_typed = |arg: &Arg| {
        let flag = arg.get_long().map(|long| format!("--{long}"));
        flag.is_some_and(|flag| words.iter().any(|word| word == flag.as_str()))
    };
    command
        .mut_args(|arg| {
            let hidden = arg.is_hide_set() || (flags_last && !arg.is_positional());
            let arg = arg.hide(hidden);
            if arg.is_require_equals_set() && is_typed(&arg) {
                arg.num_args(0)
            } else {
                arg
            }
        })
        .mut_subcommands(|verb| adapt(verb, words))
}

/// One candidate per line, its help after a tab, and a directive at the end. For a half-typed
/// `--flag=VALUE`, kubectl's scripts expect only the value.
fn for_kubectl(candidates: &[CompletionCandidate], typed: &str) -> String {
    let flag = typed.split_once('=').map(|(flag, _)| format!("{flag}="));
    let flag = flag
        .filter(|flag| flag.starts_with('-'))
        .unwrap_or_default();
    let mut text = String::new();
    for candidate in candidates {
        let value = candidate.get_value().to_string_lossy();
        text.push_str(value.strip_prefix(&flag).unwrap_or(&value));
        if let Some(help) = candidate.get_help() {
            text.push('\t');
            text.push_str(help.to_string().lines().next().unwrap_or_default());
        }
        text.push('\n');
    }
    let goes_on = !candidates.is_empty()
        && candidates
            .iter()
            .all(|candidate| candidate.get_value().to_string_lossy().ends_with('/'));
    let directive = if goes_on {
        NO_FILES | NO_SPACE
    } else {
        NO_FILES
    };
    text + &format!(":{directive}\n")
}

/// Completes names of nodes from the cluster.
///
/// A completer only gets the word under the cursor. The flags that select the cluster are in the words
/// before it, in this process's arguments.
fn nodes(definition: fn() -> Command) -> ArgValueCompleter {
    ArgValueCompleter::new(move |typed: &OsStr| {
        Question::of_this_process()
            .and_then(|question| live::nodes(definition, question.words, typed.to_str()?))
            .unwrap_or_default()
    })
}

/// Completes the arguments of `force-delete` and `why`: kinds, then names.
fn targets(definition: fn() -> Command) -> ArgValueCompleter {
    ArgValueCompleter::new(move |typed: &OsStr| {
        Question::of_this_process()
            .and_then(|question| live::targets(definition, question.words, typed.to_str()?))
            .unwrap_or_default()
    })
}

/// Completes names of the kubeconfig.
fn of_kubeconfig(
    definition: fn() -> Command,
    pick: fn(KubeconfigNames) -> Vec<String>,
) -> ArgValueCompleter {
    ArgValueCompleter::new(move |typed: &OsStr| {
        Question::of_this_process()
            .and_then(|question| live::kubeconfig(definition, question.words))
            .map(|names| beginning_with(typed, pick(names)))
            .unwrap_or_default()
    })
}

/// Completes the tools of `--opt-outs`.
fn opt_outs(typed: &OsStr) -> Vec<CompletionCandidate> {
    last_of_list(typed, &["auto", "none"], node_keys::tools())
}

/// Completes the risks of `force-delete`.
fn risks(typed: &OsStr) -> Vec<CompletionCandidate> {
    last_of_list(typed, &[NONE], RISKS.into_iter())
}

/// Completes the last value of a list. The values of `alone` can't be combined with others.
fn last_of_list(
    typed: &OsStr,
    alone: &[&'static str],
    values: impl Iterator<Item = &'static str>,
) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let (listed, _) = typed.split_at(typed.rfind(',').map_or(0, |comma| comma + 1));
    let alone = alone.iter().copied().filter(|_| listed.is_empty());
    let values = values.filter(|value| !listed.split(',').any(|it| it == *value));
    let all = alone.chain(values).map(|value| format!("{listed}{value}"));
    beginning_with(OsStr::new(&*typed), all.collect())
}

fn beginning_with(typed: &OsStr, all: Vec<String>) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let fit = all.into_iter().filter(|name| name.starts_with(&*typed));
    fit.map(CompletionCandidate::new).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::app::Cli;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(Into::into).collect()
    }

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment::of_variables(variables.iter().copied())
    }

    fn kubectl_asks(typed: &[&str]) -> String {
        let mut arguments = words(&["/usr/bin/kubectl_complete-maint"]);
        arguments.extend(words(typed));
        let question = Question::of(arguments, &environment(&[])).expect("a question");
        String::from_utf8(question.answer(Cli::command)).expect("text")
    }

    /// The candidates alone, without their help.
    fn candidates(typed: &[&str]) -> Vec<String> {
        let answer = kubectl_asks(typed);
        let mut lines: Vec<&str> = answer.lines().collect();
        assert_eq!(lines.pop(), Some(":4"), "{answer}");
        lines
            .iter()
            .map(|line| line.split('\t').next().unwrap_or_default().to_owned())
            .collect()
    }

    #[test]
    fn the_name_or_the_variable_makes_a_question() {
        let own = words(&["kubectl-maint", "--", "kubectl-maint", "acq"]);
        let of = |words: &[OsString], variables: &[(&str, &str)]| {
            Question::of(words.to_vec(), &environment(variables))
        };
        assert_eq!(of(&own, &[]), None);
        assert_eq!(of(&own, &[(VARIABLE, "")]), None);
        let work = words(&["kubectl-maint", "version"]);
        assert_eq!(of(&work, &[(VARIABLE, "bash")]), None);
        let question = of(&own, &[(VARIABLE, "fish")]).expect("a question");
        assert_eq!(question.words, words(&["kubectl-maint", "acq"]));
        assert_eq!(question.cursor, 1);
        assert_eq!(question.client, Client::Shell("fish".to_owned()));
        let question = of(&own, &[(VARIABLE, "bash"), (INDEX, "0")]).expect("a question");
        assert_eq!(question.cursor, 0);
    }

    #[test]
    fn behind_the_dashes_of_a_verb_that_runs_a_program_its_words_stand() {
        for typed in [
            &["with", "a", "--", ""][..],
            &["with", "--", "./po"],
            &["--context", "x", "with", "a", "b", "--", "ssh", "no"],
            &["fence", "a", "--isolated", "--", "./po"],
            &["unfence", "a", "--", "./po", "--fla"],
        ] {
            assert_eq!(kubectl_asks(typed), ":0\n", "{typed:?}");
        }
        assert_eq!(kubectl_asks(&["acquire", "--", "pod/"]), ":4\n");
        assert_eq!(candidates(&["with", "a", "--reen"]), ["--reentry"]);
    }

    #[test]
    fn in_a_shell_too_and_only_behind_them() {
        let scratch = tempfile::tempdir().expect("a directory");
        std::fs::write(scratch.path().join("power-off"), "").expect("a file");
        let begun = scratch.path().join("po").display().to_string();
        let line = ["--", "kubectl-maint", "with", "--reen", "--", &begun];
        let question = |cursor: usize| {
            let mut arguments = words(&["kubectl-maint"]);
            arguments.extend(words(&line));
            let surroundings = environment(&[(VARIABLE, "zsh"), (INDEX, &cursor.to_string())]);
            Question::of(arguments, &surroundings).expect("a question")
        };
        assert!(!question(2).is_of_another_program(Cli::command));
        assert!(
            !question(3).is_of_another_program(Cli::command),
            "the dashes themselves"
        );
        assert!(question(4).is_of_another_program(Cli::command));
        let offered = complete(&mut paths(), words(&line[1..]), 4, None).expect("candidates");
        let offered: Vec<_> = offered.iter().map(CompletionCandidate::get_value).collect();
        assert_eq!(offered, [scratch.path().join("power-off").as_os_str()]);
    }

    #[test]
    fn verbs_are_completed_and_hidden_ones_are_not() {
        let verbs = candidates(&[""]);
        assert!(verbs.contains(&"acquire".to_owned()), "{verbs:?}");
        assert!(!verbs.contains(&"reference".to_owned()), "{verbs:?}");
        assert!(!verbs.iter().any(|word| word.starts_with('-')), "{verbs:?}");
        assert_eq!(candidates(&["acq"]), ["acquire"]);
        assert_eq!(candidates(&["loc"]), ["lock"]);
        assert_eq!(candidates(&["unl"]), ["unlock"]);
        assert_eq!(candidates(&["nonsense"]), [""; 0]);
    }

    #[test]
    fn flags_are_completed_after_a_dash_or_if_nothing_else_fits() {
        assert_eq!(candidates(&["acquire", "--reen"]), ["--reentry"]);
        assert_eq!(candidates(&["lock", "--reen"]), ["--reentry"]);
        assert_eq!(candidates(&["acquire", "--conte"]), ["--context"]);
        assert!(candidates(&["version", ""]).contains(&"--client".to_owned()));
    }

    #[test]
    fn values_of_flags_are_completed() {
        assert_eq!(candidates(&["hold", "--opt-outs", "a"]), ["auto"]);
        assert_eq!(
            candidates(&["hold", "--opt-outs", "fluo,karp"]),
            ["fluo,karpenter"]
        );
        assert_eq!(candidates(&["hold", "--opt-outs", "fluo,au"]), [""; 0]);
        let risks = candidates(&["force-delete", "pod/a", "--accept-risk="]);
        assert!(
            risks.starts_with(&["none".into(), "owner".into()]),
            "{risks:?}"
        );
        assert_eq!(
            candidates(&["force-delete", "--accept-risk=owner,no"]),
            ["owner,no-owner"]
        );
        assert_eq!(candidates(&["fence", "--accept-risk=no"]), ["no-owner"]);
        assert_eq!(candidates(&["version", "-o", ""]), ["json", "yaml"]);
        assert_eq!(candidates(&["completion", "z"]), ["zsh"]);
    }

    /// kubectl's scripts compare the candidates with the text after the `=`.
    #[test]
    fn behind_an_equals_sign_the_value_alone_is_offered() {
        assert_eq!(candidates(&["version", "--output=y"]), ["yaml"]);
        assert_eq!(candidates(&["version", "--output="]), ["json", "yaml"]);
        assert_eq!(candidates(&["version", "-o=j"]), ["json"]);
        assert_eq!(candidates(&["version", "-oj"]), ["-ojson"]);
        assert_eq!(candidates(&["acquire", "--dry-run=c"]), ["client"]);
    }

    #[test]
    fn a_value_behind_an_equals_sign_is_not_the_next_word() {
        assert_eq!(
            candidates(&["version", "--insecure-skip-tls-verify", "--outp"]),
            ["--output"]
        );
        let next = candidates(&["version", "--insecure-skip-tls-verify", ""]);
        assert!(!next.contains(&"true".to_owned()), "{next:?}");
    }

    #[test]
    fn directories_are_left_open() {
        let scratch = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(scratch.path().join("conf")).expect("a directory in it");
        let typed = scratch.path().join("co").display().to_string();
        assert_eq!(
            kubectl_asks(&["version", "--kubeconfig", &typed]),
            format!("{typed}nf/\n:6\n")
        );
    }
}
