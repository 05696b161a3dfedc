//! Taking several nodes, all or none.

mod in_turn;

use std::collections::BTreeMap;
use std::time::{Duration, Instant as Stopwatch};

use maintenance_lease::protocol::{Instant, Refusal, SKEW_BUDGET, State, identity};
use maintenance_lease::{
    Acquire, Change, Done, Error, Lost, LostBy, Maintenance, NodeLease, Refused, Release,
};

use super::many::{self, Course, LAST_CHANCE};
use super::problems::contention;
use super::targets::Target;
use super::work::{Report, Work};
use crate::exit::Code;
use crate::failure::Failure;

/// The pauses before a node is tried again that somebody else took in the same moments: each is twice
/// the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(800);

/// For how long it is tried again, at least.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// And so many times as long as the first try of this call took, up to having given everything back:
/// whoever it met is at the same, maybe on a busier machine.
const SLOWER: u32 = 4;

/// What became of each node, by name.
pub(crate) type Results = BTreeMap<String, Result<Change, Failure>>;

/// An acquisition of several nodes on its way.
pub(crate) struct Taking<'a> {
    work: &'a Work<'a>,
    results: Results,
    course: Course,
}

impl<'a> Taking<'a> {
    pub(crate) fn new(work: &'a Work<'a>) -> Self {
        Self {
            work,
            results: Results::new(),
            course: Course::Complete,
        }
    }

    pub(crate) fn course(&self) -> Course {
        self.course
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.course == Course::Interrupted
    }

    /// What was taken, and what kept the others from being so. Nodes that were given back again, or
    /// never tried, are missing.
    pub(crate) fn into_results(self) -> Results {
        self.results
    }

    /// Adds what became of other nodes.
    pub(crate) fn add(&mut self, mut results: Results, course: Course) {
        self.results.append(&mut results);
        self.note(course);
    }

    /// Tells what became of `nodes`, in this order, and returns the code; `single` where one was
    /// named.
    ///
    /// # Errors
    /// Where the result can't be printed.
    pub(crate) async fn tell(
        mut self,
        mut report: Report<'_>,
        nodes: Vec<String>,
        single: bool,
    ) -> Result<Code, Failure> {
        if let Some(refused) = self.refused_beside_others() {
            report.again_for(&refused);
        }
        for node in nodes {
            match self.results.remove(&node) {
                Some(result) => report.add(&node, result),
                None => report.left_alone(node),
            }
        }
        if self.is_interrupted() {
            report.interrupted();
        }
        report.end(single).await
    }

    /// What was refused, by name, where other nodes of the command were got.
    fn refused_beside_others(&self) -> Option<Vec<String>> {
        let is_any_got = self.results.values().any(Result::is_ok);
        let refused = self
            .results
            .iter()
            .filter(|(_, result)| matches!(result, Err(Failure::Lock(Error::Refused(_)))));
        is_any_got.then(|| refused.map(|(node, _)| node.clone()).collect())
    }

    /// Acquires what can be had of `targets`.
    pub(crate) async fn what_can_be_had(&mut self, targets: Vec<Target>, options: &Acquire) {
        let locks = &self.work.session.locks;
        let acquire = |target: Target| async move {
            Ok(locks
                .try_acquire_seen(&target.node, options, target.seen)
                .await?)
        };
        self.each(targets, acquire).await;
    }

    /// Takes each of `targets` on its own.
    pub(crate) async fn each<F>(&mut self, targets: Vec<Target>, take: impl Fn(Target) -> F)
    where
        F: Future<Output = Result<Change, Failure>>,
    {
        let locks = &self.work.session.locks;
        let results = &mut self.results;
        let course = many::in_order(
            targets,
            self.work.args.nodes.parallel,
            take,
            |node| locks.has_open_write(node),
            |node, result| {
                results.insert(node.to_owned(), result);
            },
        )
        .await;
        self.note(course);
    }

    /// Takes all of `targets` or none.
    ///
    /// The first in name order is taken alone, the others then in parallel. Where one is refused on
    /// the way, everything is given back, and tried once more one after another in name order: of
    /// callers who overlap, the one that gets the first common node then gets all. Who took nothing
    /// was in nobody's way, so that nobody gives anything back for them.
    pub(crate) async fn all_or_none(&mut self, mut targets: Vec<Target>, options: &Acquire) {
        self.refuse_untried(&targets, options);
        if !self.results.is_empty() {
            return;
        }
        let begun = self.work.session.locks.server_time().now().earliest;
        let since = Stopwatch::now();
        targets.sort_by(|one, other| one.node.cmp(&other.node));
        let rest = targets.split_off(1);
        self.what_can_be_had(targets.clone(), options).await;
        if self.is_clean() {
            self.what_can_be_had(rest.clone(), options).await;
        }
        if self.is_clean() {
            return;
        }
        let contended = self
            .results
            .values()
            .filter_map(|result| result.as_ref().err())
            .all(|failure| contention(failure).is_some());
        let in_the_way = self.results.values().any(Result::is_ok);
        let returned = self.give_back().await;
        if !contended || !in_the_way || !returned || self.is_interrupted() {
            return;
        }
        self.results.clear();
        let patience = (since.elapsed() * SLOWER).max(PATIENCE);
        for target in targets.into_iter().chain(rest) {
            self.one_again(target.node, begun, patience, options).await;
            if !self.is_clean() {
                self.give_back().await;
                return;
            }
        }
    }

    /// Refuses, on what was read, all where one would be: nothing is written then.
    fn refuse_untried(&mut self, targets: &[Target], options: &Acquire) {
        for target in targets {
            let Some(seen) = &target.seen else {
                continue;
            };
            let checked = self.work.session.locks.check_acquire(seen, options);
            if let Err(refusal) = checked {
                self.results
                    .insert(target.node.clone(), Err(refusal.into()));
            }
        }
    }

    /// Takes one node, in its turn. Who took it since `begun` is on the same errand and may be about
    /// to give it back: it is worth another look. Nobody waits for each other, since all take their
    /// nodes in the same order.
    async fn one_again(
        &mut self,
        node: String,
        begun: Instant,
        patience: Duration,
        options: &Acquire,
    ) {
        let locks = &self.work.session.locks;
        let results = &mut self.results;
        let target = Target {
            node: node.clone(),
            seen: None,
        };
        let course = many::in_order(
            vec![target],
            1,
            |target| async move {
                let since = Stopwatch::now();
                let mut pause = FIRST_PAUSE;
                loop {
                    let failure = match locks.try_acquire(&target.node, options).await {
                        Ok(change) => return Ok(change),
                        Err(error) => Failure::from(error),
                    };
                    let fresh = contention(&failure).is_some_and(|by| is_since(by, begun));
                    if !fresh || since.elapsed() >= patience {
                        return Err(failure);
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            },
            |node| locks.has_open_write(node),
            |node, result| {
                results.insert(node.to_owned(), result);
            },
        )
        .await;
        self.note(course);
    }

    /// Gives back just what this call took, and takes it out of the results; what could not be given
    /// back stays, as the problem that it is. Returns whether all of it was. After Ctrl-C there is
    /// one bounded try.
    pub(crate) async fn give_back(&mut self) -> bool {
        let locks = &self.work.session.locks;
        let (taken, others): (Results, Results) = std::mem::take(&mut self.results)
            .into_iter()
            .partition(|(_, result)| matches!(result, Ok(change) if is_new(change, locks)));
        self.results = others;
        // What was held before stays as found, and is no result of this call, unless it replaced
        // what the caller had.
        self.results.retain(|_, result| {
            result
                .as_ref()
                .map_or(true, |change| change.done == Done::Acquired)
        });
        if self.work.is_dry_run() {
            return true;
        }
        let taken: BTreeMap<String, Change> = taken
            .into_iter()
            .filter_map(|(node, result)| Some((node, result.ok()?)))
            .collect();
        let targets = taken
            .keys()
            .map(|node| Target {
                node: node.clone(),
                seen: None,
            })
            .collect();
        let limit = self.is_interrupted().then_some(LAST_CHANCE);
        let taken = &taken;
        let results = &mut self.results;
        let mut complete = true;
        let course = many::in_order(
            targets,
            self.work.args.nodes.parallel,
            |target| async move {
                let returning = give_back(locks, &taken[&target.node]);
                let returned = match limit {
                    Some(limit) => tokio::time::timeout(limit, returning).await,
                    None => Ok(returning.await),
                };
                match returned {
                    Ok(result) => Ok(result?),
                    Err(_) => Err(Failure::InterruptedWrite { node: target.node }),
                }
            },
            |node| locks.has_open_write(node),
            |node, result| {
                if let Err(cause) = result {
                    complete = false;
                    let failure = Failure::NotGivenBack {
                        node: node.to_owned(),
                        token: taken[node].token(),
                        cause: Box::new(cause),
                    };
                    results.insert(node.to_owned(), Err(failure));
                }
            },
        )
        .await;
        self.note(course);
        complete
    }

    /// Whether nothing went wrong so far.
    pub(crate) fn is_clean(&self) -> bool {
        !self.is_interrupted() && self.results.values().all(Result::is_ok)
    }

    fn note(&mut self, course: Course) {
        if course == Course::Interrupted {
            self.course = course;
        }
    }
}

/// Gives back what a change took, if it is still that very acquisition.
///
/// # Errors
/// Where it could not be given back; that it is somebody else's by now is none.
pub(crate) async fn give_back(locks: &Maintenance, change: &Change) -> Result<(), Error> {
    let hold = change.lease.as_ref().filter(|lease| is_hold(lease));
    let returned = match (hold, change.token()) {
        (Some(hold), _) => locks.unhold_seen(&change.node, Some(hold), None).await,
        (None, Some(token)) => {
            let options = Release::new().token(token);
            locks.release(&change.node, &options).await
        }
        (None, None) => locks.release(&change.node, &Release::new()).await,
    };
    match returned {
        // Somebody broke it and has it now: it is not ours any more.
        Err(Error::Refused(refused)) if is_gone(&refused) => Ok(()),
        returned => returned.map(drop),
    }
}

/// The loss that it is where `refused` keeps from a lock that was taken before: by who or what stands
/// there instead.
pub(crate) fn lost_to(refused: Refused) -> Lost {
    let holder = refused.lease.as_ref().map(NodeLease::holder);
    Lost {
        subject: refused.subject,
        by: match holder {
            None => LostBy::Deletion,
            Some(None) => LostBy::Release,
            Some(Some(holder)) => LostBy::TakeOver(holder.to_owned()),
        },
        node: refused.node,
        lease: refused.lease,
        problem: None,
    }
}

fn is_hold(lease: &NodeLease) -> bool {
    lease.holder().is_some_and(identity::is_admin)
}

/// It took what the caller did not have before.
fn is_new(change: &Change, locks: &Maintenance) -> bool {
    let had = matches!(change.state_before, State::Held { .. } | State::AdminHold)
        && change
            .before
            .as_ref()
            .is_some_and(|lease| locks.is_own(lease));
    change.done == Done::Acquired && !had
}

/// It was acquired since `begun`, or in the same moments by another's clock.
fn is_since(refused: &Refused, begun: Instant) -> bool {
    refused
        .lease
        .as_ref()
        .and_then(NodeLease::acquired)
        .is_some_and(|acquired| Instant::from(acquired) + SKEW_BUDGET >= begun)
}

fn is_gone(refused: &Refused) -> bool {
    matches!(
        refused.refusal,
        Refusal::ChangedHands | Refusal::NotHolder | Refusal::OwnHold | Refusal::NotAHold
    )
}
