//! The wait itself, on one watch of the Leases and one timer.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, OptionFuture};
use maintenance_lease::protocol::{Now, State};
use maintenance_lease::{
    Acquire, Error, Followed, Follower, Maintenance, NodeAndLease, NodeLookup, Refused, RowDetail,
};
use tokio::time::Instant;

use crate::error::lock_state::Awaited;
use crate::error::{Failure, Obstacle, Verb};
use crate::output::error_code::ErrorCode;
use crate::output::format::Format;
use crate::output::item::Item;
use crate::output::item_error::ItemError;
use crate::run::interruption::interrupt;
use crate::run::problems::Problems;
use crate::run::session::Session;
use crate::run::targets::Target;
use crate::words::node_state::{self, AwaitedNodes, ReportedState};
use crate::words::waiting;

/// The clock is checked at least this often, because timers stop while a machine is suspended.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How often the line on a terminal is updated.
const TICK: Duration = Duration::from_secs(1);

/// A wait in progress.
pub(super) struct Wait<'a> {
    session: &'a Session<'a>,
    problems: &'a Problems<'a>,
    awaited: Awaited,
    format: Format,
    /// The nodes that have not reached the state yet.
    pending: BTreeMap<String, NodeAndLease>,
    all: usize,
    /// The nodes that have.
    items: Vec<Item>,
    leases: Follower,
    /// What was printed, if stderr is no terminal.
    reported: BTreeMap<String, ReportedState>,
    reported_count: usize,
}

impl<'a> Wait<'a> {
    pub(super) fn new(
        session: &'a Session<'a>,
        problems: &'a Problems<'a>,
        awaited: Awaited,
        format: Format,
        targets: Vec<Target>,
    ) -> Self {
        let pending: BTreeMap<String, NodeAndLease> = targets
            .into_iter()
            .filter_map(|Target { node, seen }| Some((node, seen?)))
            .collect();
        Self {
            session,
            problems,
            awaited,
            format,
            all: pending.len(),
            items: Vec::new(),
            leases: session
                .locks
                .follow(pending.keys())
                .after(pending.values().filter_map(|seen| seen.lease.as_ref())),
            pending,
            reported: BTreeMap::new(),
            reported_count: 0,
        }
    }

    fn now(&self) -> Now {
        self.session.locks.server_time().now()
    }

    /// Waits until every node has reached the state once, or until `limit` after `begun`, Ctrl-C, or a node is gone.
    /// Returns the nodes, those that reached it first.
    pub(super) async fn run(mut self, limit: Option<Duration>, begun: Instant) -> Vec<Item> {
        let deadline = limit.and_then(|limit| begun.checked_add(limit));
        let mut end = pin!(OptionFuture::from(deadline.map(tokio::time::sleep_until)));
        let mut interrupted = pin!(interrupt());
        self.complete_reached();
        if self.is_over() {
            let failed = |node: &str| {
                ItemError::of(ErrorCode::OtherFailed, Verb::Wait.not_done(node, false))
            };
            self.fail_unmet(|_, node, _| failed(node));
            return self.items;
        }
        let mut read_at = Instant::now();
        let mut missing: OptionFuture<_> = None.into();
        while limit != Some(Duration::ZERO) && !self.is_over() {
            if read_at.elapsed() >= LONGEST_PAUSE {
                read_at = Instant::now();
                missing = self.missing_without_lease().into();
            }
            self.report(deadline);
            let pause = self.until_next_change();
            let tick = tick(self.session.terminal.shows_live());
            tokio::select! {
                biased;
                () = &mut interrupted => {
                    self.session.terminal.end_live();
                    let error = self.problems.report(&Failure::Interrupted);
                    self.fail_unmet(|_, _, _| error.clone());
                    return self.items;
                }
                Some(()) = &mut end => break,
                followed = self.leases.next() => self.apply(followed).await,
                Some(nodes) = &mut missing => {
                    missing = None.into();
                    self.set_missing(&nodes);
                }
                () = tokio::time::sleep(pause) => {}
                () = tick => {}
            }
            self.complete_reached();
        }
        self.session.terminal.end_live();
        self.fail_unmet(|wait, node, seen| {
            wait.problems.report(&Failure::TimedOut {
                node: node.to_owned(),
                waited: limit.unwrap_or_default(),
                obstacle: Some(wait.obstacle(seen)),
            })
        });
        self.items
    }

    /// Adds the nodes that did not reach the state, with an error for each.
    fn fail_unmet(&mut self, error: impl Fn(&Self, &str, &NodeAndLease) -> ItemError) {
        let now = self.now();
        for (node, seen) in std::mem::take(&mut self.pending) {
            let item = Item::new(&node, seen.lease.as_ref(), &seen.row, now);
            let error = error(self, &node, &seen);
            self.items.push(item.with_error(error));
        }
    }

    /// Whether the wait ends: nothing is left to wait for, or a failure was reported.
    fn is_over(&self) -> bool {
        self.pending.is_empty() || self.problems.any()
    }

    /// Reports the nodes that have reached the state, and removes them.
    fn complete_reached(&mut self) {
        let now = self.now();
        let Self {
            session,
            problems,
            awaited,
            format,
            pending,
            items,
            ..
        } = self;
        pending.retain(|node, seen| {
            let lease = seen.lease.as_ref();
            if seen.row == NodeLookup::Missing {
                let error = problems.report(&Error::NodeNotFound(node.clone()).into());
                items.push(Item::skipped(node, error));
                return false;
            }
            let met = has_reached(seen, *awaited, &session.locks, now);
            if met {
                items.push(Item::new(node, lease, &seen.row, now));
                if format.is_for_people() {
                    session.terminal.result(node_state::line(node, lease, now));
                }
            }
            !met
        });
    }

    /// Reports the state of the other nodes if it changed; on a terminal also as a line that counts down.
    fn report(&mut self, deadline: Option<Instant>) {
        let now = self.now();
        let pending = AwaitedNodes {
            nodes: self
                .pending
                .iter()
                .map(|(node, seen)| (node.as_str(), seen.lease.as_ref()))
                .collect(),
            all: self.all,
            awaited: self.awaited,
            caller: self.session.locks.identity(),
        };
        let terminal = self.session.terminal;
        if pending.are_many() {
            let reported = std::mem::replace(&mut self.reported_count, pending.nodes.len());
            if reported != pending.nodes.len() && !terminal.shows_live() {
                terminal.remark(pending.count(now));
            }
        } else {
            for &(node, lease) in &pending.nodes {
                let known = ReportedState::of(lease, now);
                if self.reported.get(node) != Some(&known) {
                    terminal.remark(pending.line_of(node, lease, now));
                    self.reported.insert(node.to_owned(), known);
                }
            }
        }
        if terminal.shows_live() {
            let refused = match self.pending.len() {
                1 => self.pending.values().find_map(|seen| self.refusal(seen)),
                _ => None,
            };
            let refused = refused.map(|refused| *refused);
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            terminal.live(&pending.short(refused, left, now));
        }
    }

    /// How long until something changes by time alone.
    fn until_next_change(&self) -> Duration {
        let now = self.now();
        let next = self
            .pending
            .values()
            .filter_map(|seen| seen.lease.as_ref()?.next_change(now))
            .min();
        next.map_or(LONGEST_PAUSE, |next| {
            (next - now.earliest).to_duration().min(LONGEST_PAUSE)
        })
    }

    async fn apply(&mut self, followed: Result<Followed, Error>) {
        match followed {
            Ok(Followed::Changed(leases)) => {
                for (node, lease) in leases {
                    let Some(seen) = self.pending.get_mut(&node) else {
                        continue;
                    };
                    seen.lease = lease;
                    if seen.lease.is_none() {
                        self.check_exists(&node).await;
                    }
                }
            }
            Ok(Followed::Unwatched(error)) => {
                let warning = waiting::watch_failed(&error.to_string());
                self.session.terminal.warn(warning);
            }
            Ok(_) => {}
            Err(error) => {
                self.problems.report(&error.into());
            }
        }
    }

    /// Reads which Nodes without a Lease do not exist any more, because no watch shows it. `None` if all have a Lease.
    fn missing_without_lease(&self) -> Option<BoxFuture<'static, Vec<String>>> {
        let is_known = |seen: &NodeAndLease| seen.row.row().is_some();
        let without = self.pending.iter().filter(|(_, seen)| seen.lease.is_none());
        let without = without.filter(|(_, seen)| is_known(seen));
        let without: Vec<String> = without.map(|(node, _)| node.clone()).collect();
        if without.is_empty() {
            return None;
        }
        let locks = self.session.locks.clone();
        let reading = async move {
            // If this fails, the nodes are read again later.
            match &without[..] {
                [node] => match locks.node(node).await {
                    Ok(NodeLookup::Missing) => without,
                    _ => Vec::new(),
                },
                _ => match locks.nodes(None, RowDetail::Cells).await {
                    Ok(rows) => {
                        let names: BTreeSet<String> =
                            rows.into_iter().map(|row| row.name).collect();
                        without
                            .into_iter()
                            .filter(|node| !names.contains(node))
                            .collect()
                    }
                    Err(_) => Vec::new(),
                },
            }
        };
        Some(reading.boxed())
    }

    fn set_missing(&mut self, nodes: &[String]) {
        for node in nodes {
            if let Some(seen) = self.pending.get_mut(node)
                && seen.lease.is_none()
            {
                seen.row = NodeLookup::Missing;
            }
        }
    }

    /// A Lease is deleted with its Node, so check whether the Node still exists.
    async fn check_exists(&mut self, node: &str) {
        if let Ok(row) = self.session.locks.node(node).await
            && let Some(seen) = self.pending.get_mut(node)
        {
            seen.row = row;
        }
    }

    /// Why an acquisition would be refused, if the node is to be free.
    fn refusal(&self, seen: &NodeAndLease) -> Option<Box<Refused>> {
        match self.session.locks.check_acquire(seen, &Acquire::new()) {
            Err(Error::Refused(refused)) if self.awaited == Awaited::Free => Some(refused),
            _ => None,
        }
    }

    /// The obstacle for `node`.
    fn obstacle(&self, seen: &NodeAndLease) -> Obstacle {
        match self.refusal(seen) {
            Some(refused) => Obstacle::Refused(refused),
            None => Obstacle::State {
                lease: seen.lease.clone().map(Box::new),
                now: self.now(),
                awaited: self.awaited,
            },
        }
    }
}

/// Whether the node is in the `awaited` state. A lock that anybody may take counts as free.
fn has_reached(seen: &NodeAndLease, awaited: Awaited, locks: &Maintenance, now: Now) -> bool {
    let state = seen.lease.as_ref().map(|lease| lease.state(now));
    match awaited {
        Awaited::Free => locks.check_acquire(seen, &Acquire::new()).is_ok(),
        Awaited::Locked => matches!(state, Some(State::Held { .. })),
    }
}

/// Completes when the line on a terminal needs an update; never if there is none.
async fn tick(is_live: bool) {
    if is_live {
        tokio::time::sleep(TICK).await;
    } else {
        pending::<()>().await;
    }
}
