//! The next command after a refusal.

use std::time::Duration;

use maintenance_lease::protocol::{Now, Refusal, Span, State, identity, longest_extension};
use maintenance_lease::{NAMESPACE, NodeLease, Refused};

use super::fenced;
use crate::error::Verb;
use crate::error::lock_state::Awaited;
use crate::text::for_shell;
use crate::words::hint_command::{MANY, NO_REASON, Program};
use crate::words::holder::HoldingCommand;
use crate::words::holder_name::{behind, named};
use crate::words::request::RequestContext;
use crate::words::time::length;

/// What to do about `nodes`, which were all refused like the one in `refused`.
pub(in crate::words) fn hint(
    refused: &Refused,
    nodes: &[String],
    request: RequestContext<'_>,
) -> String {
    let fenced = fenced::hold(refused, request);
    if let Some(hint) = fenced.and_then(|lease| fenced::hint(refused, lease, nodes, request)) {
        return hint;
    }
    let advice = Advice::new(refused, nodes, request);
    match refused.refusal {
        Refusal::Held | Refusal::NotHolder | Refusal::AdminHold => {
            let same_person = advice.if_same_person();
            same_person.unwrap_or_else(|| advice.if_another_holds_it())
        }
        Refusal::NotAHold if advice.holder != Some(request.caller) => {
            let same_person = advice.if_same_person();
            same_person.unwrap_or_else(|| advice.ask_to_release())
        }
        _ if request.verb == Verb::Verify => stop(nodes),
        Refusal::HeldByCaller | Refusal::OwnHold => advice.if_caller_holds_it(),
        _ => advice.otherwise(),
    }
}

/// After a wait.
pub(in crate::words) const LONGER: &str = "to wait longer, increase --timeout or remove it";

/// A refusal, and what hints about it have in common.
struct Advice<'a> {
    refused: &'a Refused,
    request: RequestContext<'a>,
    nodes: &'a [String],
    /// The command, for these nodes only.
    named: Program,
    /// The command to repeat. A set is locked as a whole. Other verbs act on each node by itself.
    same: Program,
    /// The locks or nodes.
    it: &'static str,
    holder: Option<&'a str>,
    whom: String,
    waits: bool,
    is_overlong: bool,
}

impl<'a> Advice<'a> {
    fn new(refused: &'a Refused, nodes: &'a [String], request: RequestContext<'a>) -> Self {
        let program = request.program;
        let named = program.narrowed(nodes);
        let holder = refused.lease.as_ref().and_then(NodeLease::holder);
        Self {
            refused,
            request,
            nodes,
            same: match request.verb {
                Verb::Acquire | Verb::With => program.clone(),
                _ => named.clone(),
            },
            named,
            it: if nodes.len() == 1 { "it" } else { "them" },
            holder,
            whom: holder.map_or_else(|| "the holder".to_owned(), behind),
            waits: request.waited || program.waits(),
            is_overlong: is_overlong(refused, request.now),
        }
    }

    /// If the holder is a running command of the caller, or probably the caller on another host.
    fn if_same_person(&self) -> Option<String> {
        let RequestContext { verb, program, .. } = self.request;
        let (holder, whom) = (self.holder?, &self.whom);
        if program.is_under(holder) {
            return Some(under(holder, verb, &self.same));
        }
        if let Some((running, words)) = running_command(holder, self.request.caller) {
            let how = match verb {
                Verb::Acquire | Verb::With | Verb::Hold if !self.waits => self.same.with("--wait"),
                _ => format!("with {}", self.run("wait")),
            };
            return Some(match running {
                HoldingCommand::With => {
                    format!(
                        "{words}; exit its command if it still runs, or wait for the lock {how}"
                    )
                }
                HoldingCommand::ForceDelete => format!("{words}; wait for the lock {how}"),
            });
        }
        if !identity::is_same_user(holder, self.request.caller) {
            return None;
        }
        let person = identity::person(holder);
        let as_holder = self.same.as_holder(person);
        let what = match verb {
            Verb::Hold => format!("hold {} {}", self.it, as_holder.with("")),
            Verb::With => format!("work under it {}", as_holder.with("--reentry")),
            Verb::Fence | Verb::Unfence => format!(
                "add `--holder {}`{}",
                for_shell(person),
                program.place_of_flags()
            ),
            Verb::Renew if self.refused.state == State::AdminHold => {
                let hold = self.to_expect(&as_holder);
                return Some(format!(
                    "a hold does not expire; if you are {whom}, set its expected end with `{hold}`"
                ));
            }
            _ => {
                let verb = verb_of_same_user(verb, self.refused.state);
                format!("run `{}`", as_holder.run(format!("{verb} {}", self.node())))
            }
        };
        Some(match self.is_by_force() {
            true => format!("if you are {whom}, {what}; {}", self.release_if_nobody()),
            false => format!("if you are {whom}, {what}"),
        })
    }

    fn if_another_holds_it(&self) -> String {
        let RequestContext { verb, program, .. } = self.request;
        let Self { it, whom, .. } = self;
        let state = self.refused.state;
        // Don't suggest waiting for a lock that lasts longer than maintenance may take.
        let can_wait = !self.waits && !self.is_overlong;
        let or_by_force = match self.is_by_force() {
            true => format!(", or release {it} with {}", self.by_force()),
            false => String::new(),
        };
        match (self.refused.refusal, verb) {
            (_, Verb::Verify) => stop(self.nodes),
            // This is another lock than the one that was confirmed.
            (Refusal::Held | Refusal::AdminHold, Verb::Hold) if program.takes_over() => {
                "to take over the lock as it is now, run the command again".to_owned()
            }
            (Refusal::Held | Refusal::AdminHold, Verb::Hold) => {
                let take_over = self.same.with("--take-over");
                let take_over = format!("if nobody works there, take {it} over {take_over}");
                match self.waits {
                    _ if self.is_overlong => format!("{take_over}{or_by_force}"),
                    false => format!("wait for {it} {}; {take_over}", self.same.with("--wait")),
                    true => format!("{LONGER}; {take_over}"),
                }
            }
            (Refusal::Held | Refusal::AdminHold, Verb::Fence | Verb::Unfence) => {
                let ask = match (verb, self.refused.refusal) {
                    // The lock of a fenced node only ends with its fencing.
                    (Verb::Unfence, _) => "unfence the node",
                    (_, Refusal::AdminHold) => "end the hold",
                    _ => "release it",
                };
                let hold = self.named.of_verb(Verb::Hold.name(), None);
                let hold = hold.same_command("--take-over");
                format!(
                    "ask {whom} to {ask}; if nobody works there, take the lock over first with `{hold}`{or_by_force}"
                )
            }
            (Refusal::AdminHold, Verb::Acquire | Verb::With) if can_wait => format!(
                "wait for {it} {}; if nobody works there, end the hold with {}",
                self.same.with("--wait"),
                self.run("unhold")
            ),
            _ if state == State::AdminHold => format!(
                "ask {whom} to end the hold; if nobody works there, end it with {}",
                self.run("unhold")
            ),
            (Refusal::NotHolder, Verb::Release) if matches!(state, State::Expired { .. }) => {
                let (acquire, by_force) = (self.to_acquire(), self.by_force());
                let lock = if self.nodes.len() == 1 {
                    "lock"
                } else {
                    "locks"
                };
                format!("{acquire}, or only end the {lock} with {by_force}")
            }
            (Refusal::NotHolder, Verb::Release) => self.ask_to_release(),
            _ if self.is_overlong => self.ask_to_release(),
            _ => match state {
                State::Held { .. } if verb == Verb::Wait => {
                    wait_for(Awaited::Free, self.nodes, program)
                }
                State::Held { .. } if self.request.waited => LONGER.to_owned(),
                State::Held { .. } => format!("wait for {it} {}", self.to_lock().with("--wait")),
                _ => self.to_acquire(),
            },
        }
    }

    fn if_caller_holds_it(&self) -> String {
        let it = self.it;
        match (self.refused.refusal, self.request.verb) {
            (Refusal::HeldByCaller, Verb::Wait) => self.to_release(),
            (_, Verb::With) => {
                let whose = identity::person(self.holder.unwrap_or_default());
                let caller = HoldingCommand::of(self.request.caller);
                let same = match caller.is_some_and(|(_, own)| own == whose) {
                    true => &self.same,
                    false => &self.same.as_holder(whose),
                };
                format!("work under it {}", same.with("--reentry"))
            }
            (Refusal::HeldByCaller, _) => format!(
                "extend {it} with {}, or add --reentry to keep working under {it}",
                self.run("renew")
            ),
            (_, Verb::Acquire) => format!(
                "end {it} with {}, or add --reentry to keep working under {it}",
                self.run("unhold")
            ),
            (_, Verb::Renew) => format!(
                "a hold does not expire; set its expected end with `{}`",
                self.to_expect(&self.named)
            ),
            _ => format!("end the hold with {}", self.run("unhold")),
        }
    }

    /// If the holder is not the cause.
    fn otherwise(&self) -> String {
        let RequestContext { verb, program, .. } = self.request;
        match self.refused.refusal {
            Refusal::NotAHold => self.to_release(),
            Refusal::Unfinished { .. } => format!(
                "check what was left unfinished, then lock {} {}",
                self.it,
                self.to_lock().with("--take-expired")
            ),
            Refusal::ChangedHands if verb == Verb::Renew => stop(self.nodes),
            Refusal::ChangedHands => format!("show the current lock with {}", self.run("status")),
            Refusal::TooLong { left, .. } => {
                let lease = self.refused.lease.as_ref();
                possible_extension(longest_extension(left), &self.named, lease)
            }
            Refusal::Elected | Refusal::Foreign => {
                let lease = format!("get lease -n {NAMESPACE} {} -o yaml", self.node());
                format!("inspect {} with `{}`", self.it, program.kubectl(lease))
            }
            Refusal::Deleting => format!(
                "retry when the Lease is gone; check with {}",
                self.run("status")
            ),
            _ => self.to_acquire(),
        }
    }

    fn node(&self) -> &str {
        self.named.nodes(MANY)
    }

    /// `command` for these nodes.
    fn run(&self, command: &str) -> String {
        let command = format!("{command} {}", self.node());
        format!("`{}`", self.request.program.run(command))
    }

    /// The command that locks the nodes.
    fn to_lock(&self) -> Program {
        match self.request.verb {
            Verb::Acquire | Verb::With | Verb::Hold => self.same.clone(),
            _ => self.named.of_verb(Verb::Acquire.name(), None),
        }
    }

    fn to_acquire(&self) -> String {
        format!("acquire {} {}", self.it, self.to_lock().with(""))
    }

    fn to_release(&self) -> String {
        format!("release {} with {}", self.it, self.run("release"))
    }

    fn ask_to_release(&self) -> String {
        let if_nobody = self.release_if_nobody();
        format!("ask {} to release {}; {if_nobody}", self.whom, self.it)
    }

    fn release_if_nobody(&self) -> String {
        let by_force = self.by_force();
        format!("if nobody works there, release {} with {by_force}", self.it)
    }

    fn by_force(&self) -> String {
        let RequestContext { verb, program, .. } = self.request;
        let why = match verb {
            Verb::Release | Verb::Renew => program.why(),
            _ => NO_REASON,
        };
        let (node, dry_run) = (self.node(), program.dry_run());
        let release = format!("release {node}{dry_run} --force -m {why}");
        format!("`{}`", program.run(release))
    }

    /// Whether to release it by force is an alternative. A fenced node is unfenced first.
    fn is_by_force(&self) -> bool {
        self.is_overlong && self.request.verb != Verb::Unfence
    }

    /// The command that sets the expected end of the hold, for the nodes of `program`.
    fn to_expect(&self, program: &Program) -> String {
        let hold = program.of_verb(Verb::Hold.name(), self.refused.lease.as_ref());
        hold.same_command("--expect-until TIME")
    }
}

/// The flags that [`flag`] may name. If several are needed, the hint is that for the first.
pub(in crate::words) const FLAGS: [&str; 3] = ["--reentry", "--take-expired", "--wait"];

/// The flag with which the same command would lock the refused node of a set, if there is one.
pub(in crate::words) fn flag(
    refused: &Refused,
    request: RequestContext<'_>,
) -> Option<&'static str> {
    let RequestContext { verb, program, .. } = request;
    let holder = refused.lease.as_ref().and_then(NodeLease::holder);
    let is_set = matches!(verb, Verb::Acquire | Verb::With);
    if !is_set || fenced::hold(refused, request).is_some() {
        return None;
    }
    match refused.refusal {
        Refusal::Unfinished { .. } => Some("--take-expired"),
        Refusal::Held | Refusal::AdminHold if holder.is_some_and(|it| program.is_under(it)) => {
            Some("--reentry")
        }
        Refusal::Held if is_overlong(refused, request.now) => None,
        Refusal::Held | Refusal::AdminHold | Refusal::Deleting => Some("--wait"),
        _ => None,
    }
}

/// How to wait for `nodes`, after a wait that timed out.
pub(in crate::words) fn wait_for(awaited: Awaited, nodes: &[String], program: &Program) -> String {
    let named = program.narrowed(nodes);
    let condition = match awaited {
        Awaited::Free => "",
        Awaited::Locked => " --for=locked",
    };
    let it = if nodes.len() == 1 { "it" } else { "them" };
    let nodes = named.nodes(MANY);
    format!(
        "wait for {it} with `{}`",
        program.run(format_args!("wait {nodes}{condition}"))
    )
}

/// What to do after losing the locks of `nodes` that the work depends on.
fn stop(nodes: &[String]) -> String {
    let locks = if nodes.len() == 1 {
        "this lock"
    } else {
        "these locks"
    };
    format!("stop the work that relied on {locks}")
}

/// What to do about the lock of the `with` that this runs under. `same` is the same command.
fn under(holder: &str, verb: Verb, same: &Program) -> String {
    let holder = identity::person(holder);
    let flag = match verb {
        Verb::Hold => {
            return "this runs inside `with`, which has the lock; exit the command of `with` first"
                .to_owned();
        }
        Verb::Release | Verb::Unhold => {
            return "this runs inside `with`, which releases the lock when its command ends: exit that command"
                .to_owned();
        }
        Verb::Wait => {
            return "this runs inside `with`, which has the lock until its command ends; do not wait \
                    for it here"
                .to_owned();
        }
        Verb::Acquire | Verb::With => "--reentry",
        // A hook is not repeated.
        Verb::Fence | Verb::Unfence => {
            return format!(
                "this runs inside `with`, which has the lock; act as its holder: add `--holder {}`{}",
                for_shell(holder),
                same.place_of_flags()
            );
        }
        _ => "",
    };
    format!(
        "this runs inside `with`, which has the lock; act as its holder {}",
        same.as_holder(holder).with(flag)
    )
}

/// The `with` or similar command that `holder` belongs to, in words, if its user is the caller or has the
/// same name.
pub(crate) fn running_command(holder: &str, caller: &str) -> Option<(HoldingCommand, String)> {
    let (running, whose) = HoldingCommand::of(holder)?;
    let name = running.name();
    (whose == caller || identity::is_same_user(holder, caller)).then(|| {
        let words = format!("a `{name}` command of {} has the lock", named(whose));
        (running, words)
    })
}

/// What to do if the holder is the same user on another host.
fn verb_of_same_user(verb: Verb, state: State) -> &'static str {
    match (verb, state) {
        (Verb::Acquire | Verb::Release | Verb::Wait | Verb::Unhold, State::AdminHold) => "unhold",
        (Verb::Acquire, _) => "renew",
        (Verb::Wait | Verb::Unhold, _) => "release",
        (verb, _) => verb.name(),
    }
}

/// Whether it is locked for longer than maintenance may take.
fn is_overlong(refused: &Refused, now: Now) -> bool {
    let lease = refused.lease.as_ref();
    lease.is_some_and(|lease| lease.flags(now).overlong)
}

/// How to add `most` to the locks of the nodes of `named`, or to lock them for longer, with the reason in `lease` if
/// there is no new one.
pub(in crate::words) fn possible_extension(
    most: Span,
    named: &Program,
    lease: Option<&NodeLease>,
) -> String {
    let hold = named.of_verb(Verb::Hold.name(), lease).same_command("");
    let longer = format!("to keep it for longer, run `{hold}`");
    let possible = match most.to_duration().as_secs() {
        // Seconds are not worth a command.
        0..60 => return longer,
        seconds => seconds / 60 * 60,
    };
    let possible = length(Duration::from_secs(possible).into());
    let nodes = named.nodes(MANY);
    format!(
        "add at most {possible} with `{}`; {longer}",
        named.run(format_args!("renew {nodes} --duration +{possible}"))
    )
}
