//! Reports problems with a command's nodes as they come.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use maintenance_lease::{Error, RowDetail};

use crate::error::{Failure, Kind, Verb};
use crate::exit::Code;
use crate::output::format::Format;
use crate::output::item::{Item, NodeList};
use crate::output::item_error::ItemError;
use crate::run::session::Session;
use crate::ui::Terminal;
use crate::words::failure;
use crate::words::failure_group::{FailureGroups, HintGroups};
use crate::words::hint_command::Program;
use crate::words::request::RequestContext;
use crate::words::suggestions;

/// How many unknown nodes are listed. A wrong list may have very many.
const MOST_UNKNOWN: usize = 20;

/// Reports the problems with a command's nodes as they come, and keeps the worst exit code.
pub(crate) struct Problems<'a> {
    session: &'a Session<'a>,
    verb: Option<Verb>,
    /// How to run the program again, if not for everything that was requested.
    retry: Option<Program>,
    worst: Cell<Option<Kind>>,
    /// Nodes that don't exist, as they were named; only the first are printed.
    unknown: RefCell<Vec<String>>,
    /// Failures by their cause. They are reported at the end.
    groups: RefCell<FailureGroups>,
    /// Hints that nodes may share. They are printed once, at the end.
    hints: RefCell<HintGroups>,
    /// Messages and hints that were printed.
    reported: RefCell<HashSet<String>>,
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
            retry: None,
            worst: Cell::new(None),
            unknown: RefCell::default(),
            groups: RefCell::default(),
            hints: RefCell::default(),
            reported: RefCell::default(),
        }
    }

    /// From here on, the next command in a hint is for these nodes.
    pub(crate) fn retry_for(&mut self, nodes: &[String]) {
        self.retry = Some(self.session.program.narrowed(nodes));
    }

    /// Reports a problem, and returns it for programs. One that other nodes may share is reported at the end.
    pub(crate) fn report(&self, failure: &Failure) -> ItemError {
        self.note(failure.kind(self.verb));
        let request = self.request_context();
        let (message, hint) = failure::lines(failure, self.program(), request);
        let now = self.session.locks.server_time().now();
        let error = ItemError::new(failure, message.clone(), hint.clone(), now);
        let has_hint =
            request.is_some_and(|request| self.hints.borrow_mut().keep(failure, request));
        let is_kept = request
            .is_some_and(|request| self.groups.borrow_mut().keep(failure, &message, request));
        if !is_kept {
            self.report_now(failure, message, hint.filter(|_| !has_hint));
        }
        error
    }

    /// Reports a problem that ends the command, and prints it as the error of each of `nodes`.
    ///
    /// # Errors
    /// If the data can't be printed.
    pub(crate) fn report_for(
        &self,
        nodes: &[String],
        failure: &Failure,
        format: Format,
    ) -> Result<(), Failure> {
        let error = self.report(failure);
        if nodes.is_empty() {
            return Ok(());
        }
        let items = nodes.iter().map(|node| Item::skipped(node, error.clone()));
        self.session
            .terminal
            .print(&NodeList::new(items.collect()), format)?;
        Ok(())
    }

    /// Reports the failures that were kept, and the hints.
    pub(crate) fn report_groups(&self) {
        let Some(request) = self.request_context() else {
            return;
        };
        for message in self.groups.take().messages(request) {
            self.print(message, None);
        }
        for hint in self.hints.take().hints(request) {
            self.hint_once(hint);
        }
    }

    fn report_now(&self, failure: &Failure, message: String, hint: Option<String>) {
        if let Failure::Lock(Error::NodeNotFound(node)) = failure {
            let mut unknown = self.unknown.borrow_mut();
            unknown.push(node.clone());
            if unknown.len() > MOST_UNKNOWN {
                return;
            }
        }
        self.print(message, hint);
    }

    /// Prints a message and its hint, each once: a problem with all nodes, such as an unreachable server, is
    /// reported for the first of them.
    fn print(&self, message: String, hint: Option<String>) {
        if self.reported.borrow().contains(&message) {
            return;
        }
        self.session.terminal.error(&message);
        self.reported.borrow_mut().insert(message);
        hint.into_iter().for_each(|hint| self.hint_once(hint));
    }

    fn hint_once(&self, hint: String) {
        if self.reported.borrow_mut().insert(hint.clone()) {
            self.session.terminal.hint(hint);
        }
    }

    fn program(&self) -> &Program {
        self.retry.as_ref().unwrap_or(self.session.program)
    }

    fn request_context(&self) -> Option<RequestContext<'_>> {
        Some(RequestContext {
            program: self.program(),
            ..self.session.request_context(self.verb?)
        })
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
        let Session {
            terminal, program, ..
        } = self.session;
        self.report_groups();
        let mut unknown = self.unknown.take();
        if unknown.len() > MOST_UNKNOWN {
            let more = unknown.len() - MOST_UNKNOWN;
            terminal.error(&suggestions::more_unknown(more));
            unknown.truncate(MOST_UNKNOWN);
        }
        if !unknown.is_empty()
            && let Ok(rows) = self.session.locks.nodes(None, RowDetail::Cells).await
        {
            let known: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
            for hint in suggestions::instead_of(&unknown, &known, program) {
                terminal.hint(hint);
            }
        }
        self.session.warn_of_clocks();
        self.worst.get().map_or(Code::DONE, Code::from)
    }
}

impl Drop for Problems<'_> {
    /// A command that is cut short has reported everything, too.
    fn drop(&mut self) {
        self.report_groups();
    }
}

/// Reports a problem that ends a command, outside of its session.
pub(crate) fn report(terminal: &Terminal, program: &Program, failure: &Failure) {
    let (message, hint) = failure::lines(failure, program, None);
    if !message.is_empty() {
        terminal.error(&message);
    }
    if let Some(hint) = hint {
        terminal.hint(hint);
    }
}
