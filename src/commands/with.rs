//! `with`: run a command on this machine while nodes are locked.

mod args;
mod locking;
mod messages;
mod release;
mod variables;

use std::ffi::OsStr;
use std::path::Path;

use anyhow::Context as _;
use futures::join;
use maintenance_lease::{Change, DEFAULT_REQUEST_TIMEOUT, NodeEvent};
use supervisor::Signals;
use supervisor::under_lease::{CommandOutcome, Progress};

pub(crate) use self::args::WithArgs;
use self::locking::Locking;
use self::messages::Messages;
use crate::error::{Failure, InputError, Verb};
use crate::exit::Code;
use crate::run::events;
use crate::run::interruption::{Interruption, LAST_CHANCE};
use crate::run::keys::must_be_protected;
use crate::run::lock_command::LockCommand;
use crate::run::session::{Session, Start};
use crate::run::side_effects::SideEffects;
use crate::run::variables::HOLDER;
use crate::run::{problems, program};
use crate::words::change::dry_run_suffix;
use crate::words::event;
use crate::words::holder::HoldingCommand;
use crate::words::with::{NOT_RUN, With};

pub(crate) async fn run(args: &WithArgs, start: &Start<'_>) -> Result<Code, Failure> {
    Ok(with(args, start).await.unwrap_or_else(|failure| {
        problems::report(start.terminal, start.program, &failure);
        of_failure(Code::of(&failure, None), args.conflict_exit_code)
    }))
}

/// The exit code for a failure of `with` itself, for which another verb would exit with `code`. `conflict` replaces those
/// for a node that somebody else holds.
fn of_failure(code: Code, conflict: Option<u8>) -> Code {
    match code {
        Code::HELD | Code::TIMED_OUT => conflict.map_or(code, Code::other),
        Code::LOST | Code::INTERRUPTED | Code::UNSAFE | Code::NOT_FOUND | Code::NOT_EXECUTABLE => {
            code
        }
        _ => Code::WRAPPER,
    }
}

async fn with(args: &WithArgs, start: &Start<'_>) -> Result<Code, Failure> {
    program::check(&args.command[0], start.environment.get_os("PATH"))?;
    let changing = args.changing();
    let selection = changing.selection(None, start.terminal)?;
    let mut command = LockCommand::begin_locking(start, &changing, Verb::With, args.limit).await?;
    let request = command.session.connection.request_timeout;
    args.check(request.unwrap_or(DEFAULT_REQUEST_TIMEOUT))?;
    let own = command.session.locks.clone();
    command.session.locks = own
        .as_holder(HoldingCommand::With.holder(own.identity()))
        .map_err(InputError::Holder)?;
    supervisor::check().map_err(anyhow::Error::new)?;
    let locking = Locking {
        args,
        command: &command,
        own: &own,
        outer: start.environment.get(HOLDER),
    };

    // From here on Ctrl-C is noticed, also between two steps.
    let interruption = Interruption::listen_once();
    let changes = locking.all(&selection).await?;
    let words = With {
        changes: &changes,
        command: &args.command,
    };
    let session = &command.session;
    let asked = args.protect.asked();
    if command.is_dry_run() {
        let suffix = dry_run_suffix(true);
        session.terminal.result(words.would() + suffix);
        return Ok(Code::DONE);
    }
    let held = tokio::select! {
        biased;
        held = locking.keep(&changes) => held?,
        () = interruption.came() => {
            locking.release(&changes, Some(LAST_CHANCE)).await?;
            return Err(Failure::Interrupted);
        }
    };
    let protected = tokio::select! {
        biased;
        () = interruption.came() => Err(Failure::Interrupted),
        protected = session.set_keys(&changes, asked.as_ref()) => {
            must_be_protected(&protected)
        },
    };
    if let Err(failure) = protected {
        session.terminal.remark(NOT_RUN);
        release::release_all(session, held, &CommandOutcome::nothing(), &interruption).await;
        return Err(failure);
    }
    session.terminal.remark(words.begins());
    let events = reported(session, &changes);
    session.connection.leave_stdin();
    let mut child = supervisor::Command::new(args.command.clone());
    child = variables::set_all(child, &held);
    if start.environment.get_os("PROMPT_COMMAND").is_none() {
        child = with_prompt(child, &args.command[0]);
    }
    let mut messages = Messages::new(session);
    let running = async {
        let signals = Signals::new().context("could not listen for signals")?;
        let report = |progress: Progress<'_>| messages.report(progress);
        let outcome = supervisor::under_lease::run(&held, child, args.grace, signals, report).await;
        Ok::<_, Failure>(outcome.map_err(anyhow::Error::new)?)
    };
    let running = async { join!(running, events::post(session, events)) };
    let (outcome, ()) = tokio::select! {
        both = running => both,
        never = session.follow_ends(&held) => match never {},
    };
    messages.repeat();
    let (outcome, failure) = match outcome {
        Ok(outcome) => (outcome, None),
        Err(failure) => (CommandOutcome::nothing(), Some(failure)),
    };
    let interruption = Interruption::listen_once();
    let is_lost = release::release_all(session, held, &outcome, &interruption).await;
    let is_lost = is_lost || outcome.is_lost();
    match failure {
        Some(failure) => Err(failure),
        None => Ok(Code::other(outcome.code(is_lost, Code::LOST.number()))),
    }
}

/// Reports side effects of the locks; returns their Events.
fn reported(session: &Session<'_>, changes: &[Change]) -> Vec<NodeEvent> {
    let now = session.locks.server_time().now();
    let mut side_effects = SideEffects::default();
    let mut events = Vec::new();
    for change in changes {
        session.report_before(change, now);
        side_effects.add(change);
        let caller = session.locks.identity();
        events.extend(event::of(change, Verb::With, caller, false, None));
    }
    side_effects.print(session.terminal, "");
    events
}

/// Runs once before the first prompt of an interactive bash, after its startup files. Scripts ignore it.
const PROMPT_COMMAND: &str = "unset PROMPT_COMMAND; [[ $PS1 == *MAINT_NODES* ]] || \
                              PS1='[locked: $MAINT_NODES] '$PS1";

/// Shows the lock in the prompt, if `program` is a bash.
fn with_prompt(command: supervisor::Command, program: &OsStr) -> supervisor::Command {
    match Path::new(program).file_name() == Some(OsStr::new("bash")) {
        true => command.env("PROMPT_COMMAND", PROMPT_COMMAND),
        false => command,
    }
}
