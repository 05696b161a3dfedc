//! Reports problems: what went wrong, in kubectl's words, and what to do about it.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use maintenance_lease::{ApiError, Error, Refused, RowDetail};

use crate::args::duration;
use crate::error::{Failure, Kind, Obstacle, Verb};
use crate::exit::Code;
use crate::run::session::Session;
use crate::text::escape;
use crate::ui::Terminal;
use crate::words::command_line::Again;
use crate::words::program::Program;
use crate::words::refusal::{self, Asked, Group};
use crate::words::suggestions::{near_misses, wait_for};
use crate::words::{loss, rights, time};
use connect::ConnectError;

/// How many unknown nodes are listed. A wrong list may have very many.
const MOST_UNKNOWN: usize = 20;

/// How many nodes of one holder are reported one by one, and how often the same hint is printed for
/// different nodes.
const MOST_ALONE: usize = 3;

/// Reports the problems with a command's nodes as they come, and keeps the worst exit code.
pub(crate) struct Problems<'a> {
    session: &'a Session<'a>,
    verb: Option<Verb>,
    /// How to run the program again, if not for everything that was requested.
    again: Option<Program>,
    worst: Cell<Option<Kind>>,
    /// Nodes that don't exist, as they were named; only the first are told.
    unknown: RefCell<Vec<String>>,
    /// Refusals that are not reported yet, because many of one holder are reported at once.
    refused: RefCell<Vec<Refused>>,
    /// Messages and hints that were printed.
    reported: RefCell<HashSet<String>>,
    /// How often each hint was printed, for any node.
    hints: RefCell<HashMap<String, usize>>,
}

impl<'a> Problems<'a> {
    /// For a verb that only reads.
    pub(crate) fn new(session: &'a Session<'a>) -> Self {
        Self::of(session, None)
    }

    /// For a verb that changes locks.
    pub(crate) fn changing(session: &'a Session<'a>, verb: Verb) -> Self {
        Self::of(session, Some(verb))
    }

    fn of(session: &'a Session<'a>, verb: Option<Verb>) -> Self {
        Self {
            session,
            verb,
            again: None,
            worst: Cell::new(None),
            unknown: RefCell::default(),
            refused: RefCell::default(),
            reported: RefCell::default(),
            hints: RefCell::default(),
        }
    }

    /// From here on, the next command in a hint is one of `program`.
    pub(crate) fn retry_as(&mut self, program: Program) {
        self.again = Some(program);
    }

    /// Reports a problem; a refusal with those that follow.
    pub(crate) fn report(&self, failure: &Failure) {
        self.note(failure.kind(self.verb));
        match failure {
            Failure::Lock(Error::Refused(refused)) if self.verb.is_some() => {
                self.refused.borrow_mut().push(Refused::clone(refused));
            }
            failure => {
                self.report_refused();
                self.report_now(failure);
            }
        }
    }

    /// Reports the refusals so far. If one holder has many of the nodes, this takes one line.
    pub(crate) fn report_refused(&self) {
        let refused = self.refused.take();
        let Some(verb) = self.verb.filter(|_| !refused.is_empty()) else {
            return;
        };
        let asked = asked(self.session, verb);
        let asked = Asked {
            program: self.again.as_ref().unwrap_or(asked.program),
            ..asked
        };
        let groups: Vec<Option<Group>> = refused
            .iter()
            .map(|refused| Group::of(refused, asked))
            .collect();
        let mut counts: HashMap<&Group, usize> = HashMap::new();
        for group in groups.iter().flatten() {
            *counts.entry(group).or_default() += 1;
        }
        let mut many: Vec<(&Group, Vec<Refused>)> = Vec::new();
        for (refused, group) in refused.into_iter().zip(&groups) {
            match group.as_ref().filter(|group| counts[group] > MOST_ALONE) {
                None => self.report_now(&Failure::Lock(Error::Refused(Box::new(refused)))),
                Some(group) => match many.iter_mut().find(|(known, _)| *known == group) {
                    Some((_, known)) => known.push(refused),
                    None => many.push((group, vec![refused])),
                },
            }
        }
        for (_, many) in many {
            let failed = verb.failed_many(many.len());
            let (message, hint) = refusal::lines_of_many(&many, &failed, asked);
            self.print(message, Some(hint), |_| false);
        }
    }

    fn report_now(&self, failure: &Failure) {
        if let Failure::Lock(Error::NodeNotFound(node)) = failure {
            let mut unknown = self.unknown.borrow_mut();
            unknown.push(node.clone());
            if unknown.len() > MOST_UNKNOWN {
                return;
            }
        }
        let (message, hint) = match (failure, &self.again, self.verb) {
            (Failure::Lock(Error::Refused(refused)), Some(program), Some(verb)) => {
                let asked = asked(self.session, verb);
                let (message, hint) = refusal::lines(refused, Asked { program, ..asked });
                (message, Some(hint))
            }
            _ => {
                let typed = self.session.program.asked();
                words(failure, Some(typed), Some(self.session), self.verb)
            }
        };
        self.print(message, hint, |hint| self.is_one_of_many(failure, hint));
    }

    /// Prints a message and its hint, each once.
    fn print(&self, message: String, hint: Option<String>, is_superfluous: impl Fn(&str) -> bool) {
        // A problem with all nodes, such as an unreachable server, is reported once.
        if self.reported.borrow().contains(&message) {
            return;
        }
        let terminal = self.session.terminal;
        terminal.error(&message);
        let mut reported = self.reported.borrow_mut();
        reported.insert(message);
        if let Some(hint) = hint
            && reported.insert(hint.clone())
            && !is_superfluous(&hint)
        {
            terminal.hint(hint);
        }
    }

    /// Whether `hint` was printed often enough for other nodes.
    fn is_one_of_many(&self, failure: &Failure, hint: &str) -> bool {
        let node = match failure {
            Failure::Lock(Error::Refused(refused)) => &refused.node,
            Failure::TimedOut { node, .. } => node,
            _ => return false,
        };
        let mut hints = self.hints.borrow_mut();
        let count = hints
            .entry(hint.replace(node.as_str(), "NODE"))
            .or_default();
        *count += 1;
        *count > MOST_ALONE
    }

    /// Notes that the command did not fully succeed, for reasons told elsewhere.
    pub(crate) fn note(&self, kind: Kind) {
        self.worst.set(self.worst.get().max(Some(kind)));
    }

    /// Whether anything went wrong so far.
    pub(crate) fn any(&self) -> bool {
        self.worst.get().is_some()
    }

    /// Ends the command as [`end`](Self::end) does, for a caller that has to clean up behind it.
    pub(crate) async fn end_as_failure(self) -> Failure {
        let worst = self.worst.get().unwrap_or(Kind::Other);
        self.end().await;
        Failure::Reported(worst)
    }

    /// Ends the command: suggests similar names, warns about clocks, and returns the worst exit code.
    pub(crate) async fn end(self) -> Code {
        self.report_refused();
        let mut unknown = self.unknown.take();
        if unknown.len() > MOST_UNKNOWN {
            let more = unknown.len() - MOST_UNKNOWN;
            self.session
                .terminal
                .error(&format!("{more} more nodes not found"));
            unknown.truncate(MOST_UNKNOWN);
        }
        if !unknown.is_empty()
            && let Ok(rows) = self.session.locks.nodes(None, RowDetail::Cells).await
        {
            let mut is_near_any = false;
            for typed in &unknown {
                if self.session.program.asked().waits() && duration::length(typed).is_ok() {
                    is_near_any = true;
                    self.session.terminal.hint(wait_for(typed));
                    continue;
                }
                let near = near_misses(typed, rows.iter().map(|row| row.name.as_str()));
                if !near.is_empty() {
                    is_near_any = true;
                    let whose = match &unknown[..] {
                        [_] => String::new(),
                        _ => format!("{typed}: "),
                    };
                    let near = near.join(", ");
                    let hint = format!("{whose}did you mean {near}?");
                    self.session.terminal.hint(hint);
                }
            }
            if !is_near_any {
                let program = self.session.program;
                self.session
                    .terminal
                    .hint(format!("list all nodes with `{program} status`"));
            }
        }
        self.session.warn_of_clocks();
        self.worst.get().map_or(Code::DONE, Code::from)
    }
}

/// Reports a problem that ends a command, outside of its session. `typed` is the command line, if it could
/// be parsed.
pub(crate) fn report(terminal: &Terminal, failure: &Failure, typed: Option<&Again>) {
    let (message, hint) = words(failure, typed, None, None);
    if !message.is_empty() {
        terminal.error(&message);
    }
    if let Some(hint) = hint {
        terminal.hint(hint);
    }
}

/// Message and hint.
fn words(
    failure: &Failure,
    typed: Option<&Again>,
    session: Option<&Session<'_>>,
    verb: Option<Verb>,
) -> (String, Option<String>) {
    // Every failure with a line to paste occurs in a session.
    let with_line = |text: &str, line: String| {
        session.map(|session| format!("{text} `{} {line}`", session.program))
    };
    let to_see = |node: &str| with_line("check with", format!("status {node}"));
    let connect = match failure {
        Failure::Connect(error) => Some((error.to_string(), error.hint())),
        _ => failure
            .api()
            .and_then(classify)
            .map(|error| (error.to_string(), error.hint())),
    };
    match (failure, connect) {
        (Failure::Lock(Error::Unknown { node, intent, .. }), cause) => {
            let cause = cause.map_or_else(
                || failure.api().map(ToString::to_string).unwrap_or_default(),
                |(message, ..)| message,
            );
            (
                format!(
                    "unknown whether node/{node} was {intent}: the write may still take effect ({})",
                    escape(&cause)
                ),
                to_see(node),
            )
        }
        (_, Some((message, hint))) => (escape(&message), hint),
        (Failure::NothingFound { hint, .. }, None) => (failure.to_string(), hint.clone()),
        (Failure::Unconfirmed(_), None) => (
            escape(&failure.to_string()),
            Some("add --yes to confirm".to_owned()),
        ),
        (
            Failure::Usage { message, hint }
            | Failure::Unsafe { message, hint }
            | Failure::Hook { message, hint, .. }
            | Failure::OpenWrite { message, hint, .. },
            None,
        ) => (message.clone(), Some(hint.clone())),
        (Failure::UnknownTime, None) => (failure.to_string(), Some("run it again".to_owned())),
        (Failure::TooSlow { .. }, None) => (
            failure.to_string(),
            Some("use a longer --duration".to_owned()),
        ),
        (Failure::Lock(Error::Refused(refused)), None) => {
            let Some(asked) = session
                .zip(verb)
                .map(|(session, verb)| asked(session, verb))
            else {
                return (refused.to_string(), None);
            };
            let (message, hint) = refusal::lines(refused, asked);
            (message, Some(hint))
        }
        (
            Failure::TimedOut {
                node,
                waited,
                obstacle,
            },
            None,
        ) => {
            let timed_out = format!(
                "timed out after {} waiting for node/{node}",
                length(*waited)
            );
            match obstacle {
                Some(Obstacle::Refused(refused)) => {
                    let Some((session, verb)) = session.zip(verb) else {
                        return (format!("{timed_out}: {refused}"), None);
                    };
                    let asked = Asked {
                        waited: true,
                        ..asked(session, verb)
                    };
                    let (message, hint) = refusal::lines(refused, asked);
                    let message = match (*waited, verb) {
                        (Duration::ZERO, _) => message,
                        (_, Verb::Wait) => {
                            let cause = refusal::cause(refused, asked);
                            format!("{timed_out} to be free: {cause}")
                        }
                        _ => format!("{timed_out}: {}", refusal::cause(refused, asked)),
                    };
                    (message, Some(hint))
                }
                Some(Obstacle::Stands { how, awaited, hint }) => {
                    let message = match *waited {
                        Duration::ZERO => format!("node/{node} is not {awaited}: {how}"),
                        _ => format!("{timed_out} to be {awaited}: {how}"),
                    };
                    (message, hint.clone())
                }
                None => (timed_out, None),
            }
        }
        (Failure::Lock(Error::MissingRight { right, source }), None) => (
            escape(&source.to_string()),
            Some(format!(
                "you need permission to {right}: {}",
                rights::granted(right, typed.map_or("", Again::verb))
            )),
        ),
        (Failure::Lock(Error::NamespaceTerminating(_)), None) => (
            failure.to_string(),
            Some("retry when the namespace is gone; acquire creates it again".to_owned()),
        ),
        (Failure::Lock(Error::Contended { node, .. }), None) => (
            failure.to_string(),
            with_line("nothing was changed; check with", format!("status {node}")),
        ),
        (Failure::Lock(Error::Lost(lost)), None) => {
            let Some(session) = session else {
                return (lost.to_string(), None);
            };
            let now = session.locks.server_time().now();
            let (message, hint) = loss::while_waiting(lost, now, session.program);
            (message, Some(hint))
        }
        (Failure::InterruptedWrite { node }, None) => (failure.to_string(), to_see(node)),
        (Failure::OtherLease { .. }, None) => (
            failure.to_string(),
            with_line(
                "stop the work that relied on this lock; show your locks with",
                "status --mine -o lock-id".to_owned(),
            ),
        ),
        (
            Failure::NotGivenBack {
                node,
                lock_id,
                cause,
            },
            None,
        ) => {
            let (cause, _) = words(cause, typed, session, verb);
            let lock_id = lock_id
                .as_ref()
                .map(|id| format!(" --lock-id {id}"))
                .unwrap_or_default();
            let (was, line) = match verb {
                Some(Verb::Hold) => ("put on hold", format!("unhold {node}")),
                _ => ("acquired", format!("release {node}{lock_id}")),
            };
            (
                format!("node/{node} was {was} but could not be released: {cause}"),
                with_line("release it with", line),
            )
        }
        (Failure::Reported(_), None) => (String::new(), None),
        (other, None) => (escape(&other.to_string()), None),
    }
}

/// The request, as one that has not waited.
fn asked<'a>(session: &'a Session<'_>, verb: Verb) -> Asked<'a> {
    Asked {
        verb,
        caller: session.locks.identity(),
        program: session.program,
        now: session.locks.server_time().now(),
        waited: false,
    }
}

fn length(waited: Duration) -> String {
    time::length(waited.into())
}

/// The problem with the connection or the credentials behind an API error, if it is one.
fn classify(error: &ApiError) -> Option<ConnectError> {
    match error {
        ApiError::Transport(source) => ConnectError::classify(source),
        ApiError::TimedOut(after) => Some(ConnectError::TimedOut { after: *after }),
        ApiError::Status(status) if status.code == 401 => Some(ConnectError::Unauthorized {
            message: status.message.clone(),
        }),
        _ => None,
    }
}
