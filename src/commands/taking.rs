//! Taking several nodes, all or none.

use std::collections::BTreeMap;
use std::time::Duration;

use maintenance_lease::protocol::{Instant, Refusal, SKEW_BUDGET};
use maintenance_lease::{Acquire, Change, Done, Error, NodeLease, Refused, Release};

use super::many::{self, Course, LAST_CHANCE};
use super::problems::contention;
use super::targets::Target;
use super::work::Work;
use crate::failure::Failure;

/// The pauses before a node is tried again that somebody else took in the same moments.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
];

/// What became of each node, by name.
pub(crate) type Results = BTreeMap<String, Result<Change, Failure>>;

/// An acquisition of several nodes on its way.
pub(crate) struct Taking<'a> {
    work: &'a Work<'a>,
    options: Acquire,
    results: Results,
    course: Course,
}

impl<'a> Taking<'a> {
    pub(crate) fn new(work: &'a Work<'a>, options: Acquire) -> Self {
        Self {
            work,
            options,
            results: Results::new(),
            course: Course::Complete,
        }
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.course == Course::Interrupted
    }

    /// What was taken, and what kept the others from being so. Nodes that were given back again, or
    /// never tried, are missing.
    pub(crate) fn into_results(self) -> Results {
        self.results
    }

    /// Takes what can be had of `targets`.
    pub(crate) async fn each(&mut self, targets: Vec<Target>) {
        let parallel = self.work.args.nodes.parallel;
        let (locks, options) = (&self.work.session.locks, &self.options);
        let results = &mut self.results;
        let course = many::in_order(
            targets,
            parallel,
            |target| async move {
                Ok(locks
                    .try_acquire_seen(&target.node, options, target.seen)
                    .await?)
            },
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
    /// callers who overlap, the one that gets the first common node then gets all.
    pub(crate) async fn all_or_none(&mut self, mut targets: Vec<Target>) {
        self.refuse_untried(&targets);
        if !self.results.is_empty() {
            return;
        }
        let begun = self.work.session.locks.server_time().now().earliest;
        targets.sort_by(|one, other| one.node.cmp(&other.node));
        let rest = targets.split_off(1);
        self.each(targets.clone()).await;
        if self.is_clean() {
            self.each(rest.clone()).await;
        }
        if self.is_clean() {
            return;
        }
        let contended = self
            .results
            .values()
            .filter_map(|result| result.as_ref().err())
            .all(|failure| contention(failure).is_some());
        let returned = self.give_back().await;
        if !contended || !returned || self.is_interrupted() {
            return;
        }
        self.results.clear();
        for target in targets.into_iter().chain(rest) {
            self.one_again(target.node, begun).await;
            if !self.is_clean() {
                self.give_back().await;
                return;
            }
        }
    }

    /// Refuses, on what was read, all where one would be: nothing is written then.
    fn refuse_untried(&mut self, targets: &[Target]) {
        for target in targets {
            let Some(seen) = &target.seen else {
                continue;
            };
            let checked = self.work.session.locks.check_acquire(seen, &self.options);
            if let Err(refusal) = checked {
                self.results
                    .insert(target.node.clone(), Err(refusal.into()));
            }
        }
    }

    /// Takes one node, in its turn. Who took it since `begun` is on the same errand and may be about
    /// to give it back: it is worth another look. Nobody waits for each other, since all take their
    /// nodes in the same order.
    async fn one_again(&mut self, node: String, begun: Instant) {
        let (locks, options) = (&self.work.session.locks, &self.options);
        let results = &mut self.results;
        let target = Target {
            node: node.clone(),
            seen: None,
        };
        let course = many::in_order(
            vec![target],
            1,
            |target| async move {
                let mut pauses = PAUSES.iter();
                loop {
                    let failure = match locks.try_acquire(&target.node, options).await {
                        Ok(change) => return Ok(change),
                        Err(error) => Failure::from(error),
                    };
                    let fresh = contention(&failure).is_some_and(|by| is_since(by, begun));
                    match pauses.next().filter(|_| fresh) {
                        Some(&pause) => tokio::time::sleep(pause).await,
                        None => return Err(failure),
                    }
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
        let (taken, others): (Results, Results) = std::mem::take(&mut self.results)
            .into_iter()
            .partition(|(_, result)| matches!(result, Ok(change) if change.done == Done::Acquired));
        self.results = others;
        // What was held before stays as found, and is no result of this call.
        self.results.retain(|_, result| result.is_err());
        if self.work.is_dry_run() {
            return true;
        }
        let tokens: BTreeMap<String, _> = taken
            .into_iter()
            .filter_map(|(node, result)| Some((node, result.ok()?.token())))
            .collect();
        let targets = tokens
            .keys()
            .map(|node| Target {
                node: node.clone(),
                seen: None,
            })
            .collect();
        let limit = self.is_interrupted().then_some(LAST_CHANCE);
        let locks = &self.work.session.locks;
        let tokens = &tokens;
        let results = &mut self.results;
        let mut complete = true;
        let course = many::in_order(
            targets,
            self.work.args.nodes.parallel,
            |target| async move {
                let mut options = Release::new();
                if let Some(token) = &tokens[&target.node] {
                    options = options.token(token.clone());
                }
                let release = locks.release(&target.node, &options);
                let released = match limit {
                    Some(limit) => tokio::time::timeout(limit, release).await,
                    None => Ok(release.await),
                };
                match released {
                    Ok(Ok(_)) => Ok(()),
                    // Somebody broke it and has it now: it is not ours any more.
                    Ok(Err(Error::Refused(refused))) if is_gone(&refused) => Ok(()),
                    Ok(Err(error)) => Err(error.into()),
                    Err(_) => Err(Failure::InterruptedWrite { node: target.node }),
                }
            },
            |node| locks.has_open_write(node),
            |node, result| {
                if let Err(cause) = result {
                    complete = false;
                    let failure = Failure::NotGivenBack {
                        node: node.to_owned(),
                        token: tokens[node].clone(),
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

    fn is_clean(&self) -> bool {
        !self.is_interrupted() && self.results.values().all(Result::is_ok)
    }

    fn note(&mut self, course: Course) {
        if course == Course::Interrupted {
            self.course = course;
        }
    }
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
        Refusal::ChangedHands | Refusal::NotHolder | Refusal::OwnHold
    )
}
