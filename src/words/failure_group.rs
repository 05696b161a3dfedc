//! Failures of many nodes with the same cause: they have one line and one hint.

use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use maintenance_lease::protocol::{Instant, Refusal, State};
use maintenance_lease::{Error, Refused};

use super::failure::timed_out_waiting;
use super::hint_command::MANY;
use super::lock::why;
use super::refusal;
use super::request::RequestContext;
use super::time::clock;
use super::verb::first;
use crate::error::{Awaited, Failure, Obstacle, Verb};

/// How many names are listed.
const LISTED: usize = 5;

/// How many failures with the same cause are reported one by one, if there are no more.
const MOST_ALONE: usize = 3;

/// What the failures of a group have in common.
#[derive(Debug, PartialEq, Eq)]
enum Cause {
    /// Who has the lock, and why; and how long the command waited.
    Lock {
        waited: Duration,
        refusal: Refusal,
        state: Discriminant<State>,
        holder: String,
        reason: Option<String>,
    },
    /// The nodes did not reach the awaited state in this time.
    State { waited: Duration, awaited: Awaited },
}

/// Failures with the same cause.
#[derive(Debug)]
pub(crate) struct FailureGroup {
    cause: Cause,
    nodes: Vec<String>,
    /// The messages about the first of these, as many as are reported one by one.
    messages: Vec<String>,
    /// The refusal of the first of these, if they were refused.
    refused: Option<Refused>,
    /// When the last of their locks expires, if all do.
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
        let Some((node, refused, cause)) = cause(failure, request) else {
            return false;
        };
        let end = refused.and_then(end_of);
        let known = self.0.iter().position(|group| group.cause == cause);
        let group = known.unwrap_or_else(|| {
            self.0.push(FailureGroup {
                cause,
                nodes: Vec::new(),
                messages: Vec::new(),
                refused: refused.cloned(),
                end,
            });
            self.0.len() - 1
        });
        let group = &mut self.0[group];
        group.end = group.end.zip(end).map(|(one, other)| one.max(other));
        group.nodes.push(node.to_owned());
        if group.messages.len() < MOST_ALONE {
            group.messages.push(message.to_owned());
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

    /// A hint for each group, without those that another hint begins with.
    pub(crate) fn hints(self, request: RequestContext<'_>) -> Vec<String> {
        let groups = self.0.iter();
        let hints: Vec<String> = groups
            .map(|group| group.source.hint(&group.nodes, request))
            .collect();
        let goes_on = |hint: &String| {
            let mut others = hints.iter().filter(|other| *other != hint);
            others.any(|other| other.starts_with(&**hint))
        };
        hints
            .iter()
            .filter(|hint| !goes_on(hint))
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

    fn hint(&self, nodes: &[String], request: RequestContext<'_>) -> String {
        match self {
            Self::Refused { refused, waited } => {
                let waited = *waited;
                refusal::hint(refused, nodes, RequestContext { waited, ..request })
            }
            Self::Awaited(awaited) => refusal::wait_longer(*awaited, nodes, request.program),
        }
    }
}

impl FailureGroup {
    /// One message for all, if there are many.
    fn messages(self, request: RequestContext<'_>) -> Vec<String> {
        let count = self.nodes.len();
        if count <= MOST_ALONE {
            return self.messages;
        }
        let failed = match (&self.cause, &self.refused) {
            (Cause::Lock { waited, reason, .. }, Some(refused)) => {
                let until = self.end.map(|end| {
                    let end = clock(end, request.now.latest);
                    format!(" (until {end} at the latest)")
                });
                let reason = reason.as_ref().and(refused.lease.as_ref());
                let reason = reason.map(why).unwrap_or_default();
                let about = format!("{reason}{}", until.unwrap_or_default());
                let failed = match (waited.is_zero(), request.verb) {
                    (true, verb) => verb.failed_many(count),
                    (_, Verb::Wait) => format!("{} to be free", many_timed_out(*waited, count)),
                    _ => many_timed_out(*waited, count),
                };
                let cause = refusal::cause_with(refused, &about, request);
                format!("{failed}: {cause}")
            }
            (&Cause::State { waited, awaited }, _) if waited.is_zero() => {
                format!("{count} nodes are not {awaited}")
            }
            (&Cause::State { waited, awaited }, _) => {
                format!("{} to be {awaited}", many_timed_out(waited, count))
            }
            (Cause::Lock { .. }, None) => return self.messages,
        };
        vec![format!("{failed}: {}", first(&self.nodes, LISTED))]
    }
}

fn many_timed_out(waited: Duration, nodes: usize) -> String {
    timed_out_waiting(waited, &format!("{nodes} nodes"))
}

/// The node, the refusal and the cause of `failure`; `None` if it is always reported by itself.
fn cause<'f>(
    failure: &'f Failure,
    request: RequestContext<'_>,
) -> Option<(&'f str, Option<&'f Refused>, Cause)> {
    let (waited, refused) = match failure {
        Failure::Lock(Error::Refused(refused)) => (Duration::ZERO, refused),
        Failure::TimedOut {
            waited,
            obstacle: Some(Obstacle::Refused(refused)),
            ..
        } => (*waited, refused),
        Failure::TimedOut {
            node,
            waited,
            obstacle: Some(Obstacle::State { awaited, .. }),
        } => {
            let (waited, awaited) = (*waited, *awaited);
            return Some((node, None, Cause::State { waited, awaited }));
        }
        _ => return None,
    };
    if refusal::fenced::hold(refused, request).is_some() {
        return None;
    }
    let lease = refused.lease.as_ref()?;
    let cause = Cause::Lock {
        waited,
        refusal: refused.refusal,
        state: discriminant(&refused.state),
        holder: lease.holder()?.to_owned(),
        reason: lease.reason().map(ToOwned::to_owned),
    };
    Some((&refused.node, Some(refused), cause))
}

/// When the lock of a refusal expires, if it does.
fn end_of(refused: &Refused) -> Option<Instant> {
    match refused.state {
        State::Held { until } if until != Instant::UNREADABLE => Some(until),
        _ => None,
    }
}
