//! Refusals of many nodes with the same cause: they have one line and one hint.

use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use maintenance_lease::Refused;
use maintenance_lease::protocol::{Instant, Refusal, State};

use super::failure::timed_out_waiting;
use super::hint_command::MANY;
use super::holder_name::behind;
use super::lock::why;
use super::refusal::{self, FLAGS};
use super::request::RequestContext;
use super::time::clock;
use super::verb::first;
use crate::error::lock_state::Awaited;
use crate::error::{Failure, Obstacle, Verb};
use crate::words::holder::HoldingCommand;

/// How many names are listed.
const LISTED: usize = 5;

/// How many failures with the same cause are reported one by one, if there are no more.
const MOST_ALONE: usize = 3;

/// Nobody reads more hints. The next run shows the rest.
const MOST_HINTS: usize = 2;

/// What the refusals of a group have in common.
#[derive(Debug, PartialEq, Eq)]
struct Cause {
    /// How long the command waited.
    waited: Duration,
    refusal: Refusal,
    state: Discriminant<State>,
    /// Who has the locks, and whether running commands of theirs keep them.
    person: String,
    running: Option<HoldingCommand>,
}

/// Refusals with the same cause.
#[derive(Debug)]
struct FailureGroup {
    cause: Cause,
    nodes: Vec<String>,
    /// The messages about the first of these, as many as are reported one by one.
    messages: Vec<String>,
    /// The refusal of the first node.
    first: Refused,
    /// The reason and ticket of the locks, if all have the same.
    why: Option<String>,
    /// When the first of the locks was acquired; `None` if unknown for any, or if they have expired.
    start: Option<Instant>,
    /// When the last of the locks expires, if all do.
    end: Option<Instant>,
}

/// The groups of a command.
#[derive(Debug, Default)]
pub(crate) struct FailureGroups(Vec<FailureGroup>);

/// Nodes that failed with the same hint.
#[derive(Debug)]
struct HintGroup {
    source: HintSource,
    /// Its hint, for no node in particular.
    hint: String,
    nodes: Vec<String>,
}

/// The hints of a command.
#[derive(Debug, Default)]
pub(crate) struct HintGroups(Vec<HintGroup>);

impl FailureGroups {
    /// Keeps a failure for later, unless it is always reported by itself.
    pub(crate) fn keep(
        &mut self,
        failure: &Failure,
        message: &str,
        request: RequestContext<'_>,
    ) -> bool {
        let Some(new) = FailureGroup::of(failure, message, request) else {
            return false;
        };
        match self.0.iter_mut().find(|group| group.cause == new.cause) {
            Some(group) => group.add(new),
            None => self.0.push(new),
        }
        true
    }

    /// The messages about all that was kept.
    pub(crate) fn messages(self, request: RequestContext<'_>) -> Vec<String> {
        let groups = self.0.into_iter();
        groups.flat_map(|group| group.messages(request)).collect()
    }
}

impl HintGroups {
    /// Keeps the hint of `failure` for later, unless it is always printed by itself.
    pub(crate) fn keep(&mut self, failure: &Failure, request: RequestContext<'_>) -> bool {
        let Some((node, source)) = HintSource::of(failure) else {
            return false;
        };
        let hint = source.hint(&[MANY.to_owned()], request);
        let alike = self.0.iter_mut().find(|group| group.hint == hint);
        let nodes = vec![node.to_owned()];
        match alike {
            Some(group) => group.nodes.extend(nodes),
            None => self.0.push(HintGroup {
                source,
                hint,
                nodes,
            }),
        }
        true
    }

    /// At most two hints, one for each group, without those that another hint begins with. If a set needs several flags, one
    /// hint names them all. With fewer, the command would fail again.
    pub(crate) fn hints(self, request: RequestContext<'_>) -> Vec<String> {
        let groups = self.0.iter();
        let groups: Vec<_> = groups.map(|it| (it, it.source.flag(request))).collect();
        let is_needed = |flag: &&str| {
            let is_typed = *flag == "--wait" && request.program.waits();
            is_typed || groups.iter().any(|(_, needed)| *needed == Some(flag))
        };
        let flags: Vec<&str> = FLAGS.into_iter().filter(is_needed).collect();
        let (first, others) = flags.split_first().unzip();
        let program = &request.program.adding(others.unwrap_or_default());
        let request = RequestContext { program, ..request };
        let groups = groups
            .into_iter()
            .filter(|(_, flag)| flag.is_none() || flag.as_ref() == first);
        let hints: Vec<String> = groups
            .map(|(group, _)| group.source.hint(&group.nodes, request))
            .collect();
        let goes_on = |hint: &String| {
            let mut others = hints.iter().filter(|other| *other != hint);
            others.any(|other| other.starts_with(&**hint))
        };
        hints
            .iter()
            .filter(|hint| !goes_on(hint))
            .take(MOST_HINTS)
            .cloned()
            .collect()
    }
}

/// What a hint depends on, besides the nodes.
#[derive(Debug)]
enum HintSource {
    Refused { refused: Box<Refused>, waited: bool },
    Awaited(Awaited),
}

impl HintSource {
    /// The node, and the source.
    fn of(failure: &Failure) -> Option<(&str, Self)> {
        if let Some(refused) = failure.refused() {
            let waited = matches!(failure, Failure::TimedOut { .. });
            let source = Self::Refused {
                refused: Box::new(refused.clone()),
                waited,
            };
            return Some((&refused.node, source));
        }
        match failure {
            Failure::TimedOut {
                node,
                obstacle: Some(Obstacle::State { awaited, .. }),
                ..
            } => Some((node, Self::Awaited(*awaited))),
            _ => None,
        }
    }

    /// The flag with which the same command locks a set that has such nodes.
    fn flag(&self, request: RequestContext<'_>) -> Option<&'static str> {
        match self {
            Self::Refused { refused, .. } => refusal::flag(refused, request),
            Self::Awaited(_) => None,
        }
    }

    fn hint(&self, nodes: &[String], request: RequestContext<'_>) -> String {
        match self {
            Self::Refused { refused, waited } => {
                let waited = *waited;
                refusal::hint(refused, nodes, RequestContext { waited, ..request })
            }
            Self::Awaited(awaited) => refusal::wait_for(*awaited, nodes, request.program),
        }
    }
}

impl FailureGroup {
    /// The group of one failure with its message; `None` if it is always reported by itself.
    fn of(failure: &Failure, message: &str, request: RequestContext<'_>) -> Option<Self> {
        let refused = failure.refused()?;
        let waited = match failure {
            Failure::TimedOut { waited, .. } => *waited,
            _ => Duration::ZERO,
        };
        if refusal::fenced::hold(refused, request).is_some() {
            return None;
        }
        let lease = refused.lease.as_ref()?;
        let holder = lease.holder()?;
        Some(Self {
            cause: Cause {
                waited,
                refusal: refused.refusal,
                state: discriminant(&refused.state),
                person: behind(holder),
                running: HoldingCommand::of(holder).map(|(running, _)| running),
            },
            nodes: vec![refused.node.clone()],
            messages: vec![message.to_owned()],
            first: refused.clone(),
            why: Some(why(lease)),
            start: start_of(refused),
            end: end_of(refused),
        })
    }

    /// Adds the refusal of another node.
    fn add(&mut self, other: Self) {
        self.nodes.extend(other.nodes);
        if self.messages.len() < MOST_ALONE {
            self.messages.extend(other.messages);
        }
        if self.why != other.why {
            self.why = None;
        }
        let starts = self.start.zip(other.start);
        self.start = starts.map(|(one, other)| one.min(other));
        self.end = self.end.zip(other.end).map(|(one, other)| one.max(other));
    }

    /// One message for all, if there are many.
    fn messages(self, request: RequestContext<'_>) -> Vec<String> {
        let count = self.nodes.len();
        if count <= MOST_ALONE {
            return self.messages;
        }
        let waited = self.cause.waited;
        let timed_out = timed_out_waiting(waited, &format!("{count} nodes"));
        let failed = match (waited.is_zero(), request.verb) {
            (true, verb) => verb.failed_many(count),
            (_, Verb::Wait) => format!("{timed_out} to be free"),
            _ => timed_out,
        };
        let nodes = first(&self.nodes, LISTED);
        let (first, person) = (&self.first, &self.cause.person);
        let cause = refusal::cause_with(first, count, person, &self.about(request), request);
        vec![format!("{failed} ({nodes}): {cause}")]
    }

    /// Why, since when and until when the nodes are locked.
    fn about(&self, request: RequestContext<'_>) -> String {
        let at = |instant| clock(instant, request.now.latest);
        let since = self
            .start
            .map(|start| format!("since {} or later", at(start)));
        let until = self.end.map(|end| match self.cause.running {
            Some(HoldingCommand::With) => "each renewed while its command runs".to_owned(),
            _ => format!("the last until {}", at(end)),
        });
        let (why, differs) = match &self.why {
            Some(why) => (why.as_str(), None),
            None => ("", Some("different reasons".to_owned())),
        };
        let about: Vec<String> = differs.into_iter().chain(since).chain(until).collect();
        match about.is_empty() {
            true => why.to_owned(),
            false => format!("{why} ({})", about.join(", ")),
        }
    }
}

/// When the lock of a refusal was acquired. Of an expired lock, this would read as the time at which it expired.
fn start_of(refused: &Refused) -> Option<Instant> {
    match refused.state {
        State::Expired { .. } => None,
        _ => refused.lease.as_ref()?.acquired().map(Instant::from),
    }
}

/// When the lock of a refusal expires, if it does.
fn end_of(refused: &Refused) -> Option<Instant> {
    match refused.state {
        State::Held { until } if until != Instant::UNREADABLE => Some(until),
        _ => None,
    }
}
