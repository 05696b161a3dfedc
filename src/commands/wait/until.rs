//! The wait itself: one watch of the Leases, and one timer.

use std::collections::BTreeMap;
use std::future::{pending, ready};
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use maintenance_lease::protocol::Now;
use maintenance_lease::{Acquire, Error, LeaseEvent, NodeLease, Seen, Sight, WatchEvent};
use tokio::time::Instant;

use super::{Condition, WaitArgs};
use crate::cli::output::Format;
use crate::commands::many;
use crate::commands::problems::Problems;
use crate::commands::targets::{Target, Targets};
use crate::failure::{Failure, Obstacle};
use crate::report::awaited::{self, Known, Unmet};
use crate::report::item::Item;
use crate::report::waiting;
use crate::session::Session;

/// How long nodes whose Leases can't be watched go without being read.
const BLIND: Duration = Duration::from_secs(10);

/// After this time at the latest the clock is looked at again: timers stand still while a machine
/// sleeps.
const LONGEST_NAP: Duration = Duration::from_secs(30);

/// How often the line on a terminal is shown anew.
const TICK: Duration = Duration::from_secs(1);

/// A wait on its way.
pub(super) struct Wait<'a> {
    session: &'a Session<'a>,
    problems: &'a Problems<'a>,
    args: &'a WaitArgs,
    /// The nodes that are not there yet.
    unmet: BTreeMap<String, Seen>,
    all: usize,
    /// Those that are.
    items: Vec<Item>,
    /// `None`: nothing can be watched, and is read every now and then.
    leases: Option<BoxStream<'static, Result<LeaseEvent, Error>>>,
    /// When what can't be watched is read next.
    look_at: Instant,
    told_blind: bool,
    /// What was told in a script.
    told: BTreeMap<String, Known>,
    told_count: usize,
}

impl<'a> Wait<'a> {
    pub(super) fn new(
        session: &'a Session<'a>,
        problems: &'a Problems<'a>,
        args: &'a WaitArgs,
        targets: Targets,
    ) -> Self {
        let unmet: BTreeMap<String, Seen> = targets
            .nodes
            .into_iter()
            .filter_map(|Target { node, seen }| Some((node, seen?)))
            .collect();
        Self {
            session,
            problems,
            args,
            all: unmet.len(),
            unmet,
            items: Vec::new(),
            leases: None,
            look_at: Instant::now() + BLIND,
            told_blind: false,
            told: BTreeMap::new(),
            told_count: 0,
        }
    }

    fn now(&self) -> Now {
        self.session.locks.server_time().now()
    }

    /// Waits until every node was there once, or time is over, or Ctrl-C, or a node is gone. Returns
    /// those that were there.
    pub(super) async fn go_on(mut self) -> Vec<Item> {
        let end = Instant::now() + self.args.timeout;
        let mut interrupted = pin!(many::interrupt());
        self.take_out();
        if self.is_over() {
            return self.items;
        }
        let waits = self.args.timeout > Duration::ZERO;
        if waits {
            self.leases = Some(self.watch());
        }
        while waits && !self.is_over() {
            self.tell();
            let wake_at = self.wakes_at();
            let tick = tick(self.session.terminal.live_width().is_some());
            tokio::select! {
                biased;
                () = &mut interrupted => {
                    self.session.terminal.end_live();
                    self.problems.tell(&Failure::Interrupted);
                    return self.items;
                }
                () = tokio::time::sleep_until(end) => break,
                event = next_of(&mut self.leases) => self.take_in(event).await,
                () = tokio::time::sleep_until(wake_at) => {
                    if self.leases.is_none() {
                        self.read_again().await;
                    }
                }
                () = tick => {}
            }
            self.take_out();
        }
        self.session.terminal.end_live();
        for (node, seen) in std::mem::take(&mut self.unmet) {
            let obstacle = self.obstacle(&node, &seen);
            self.problems.tell(&Failure::TimedOut {
                node,
                waited: self.args.timeout,
                obstacle: Some(obstacle),
            });
        }
        self.items
    }

    /// Nothing is left to wait for; or it is in vain, which was told.
    fn is_over(&self) -> bool {
        self.unmet.is_empty() || self.problems.any()
    }

    fn watch(&self) -> BoxStream<'static, Result<LeaseEvent, Error>> {
        let mut nodes = self.unmet.iter();
        match (nodes.next(), nodes.next()) {
            (Some((node, seen)), None) => {
                let version = seen.lease.as_ref().map(NodeLease::resource_version);
                self.session.locks.watch_leases(Some(node), version)
            }
            _ => self.session.locks.watch_leases(None, None),
        }
    }

    /// Tells which nodes are where they were waited for, and takes them out.
    fn take_out(&mut self) {
        let now = self.now();
        let Self {
            session,
            problems,
            args,
            unmet,
            items,
            ..
        } = self;
        unmet.retain(|node, seen| {
            let lease = seen.lease.as_ref();
            if seen.row == Sight::Missing {
                problems.tell(&Error::NodeNotFound(node.clone()).into());
                return false;
            }
            let met = args.condition.is_met(seen, &session.locks, now);
            if met {
                items.push(Item::new(node, lease, &seen.row, now));
                if matches!(args.output.format(), Format::Text | Format::Wide) {
                    session.terminal.result(awaited::stands(node, lease, now));
                }
            }
            !met
        });
    }

    /// Says how the others stand, where that is new.
    fn tell(&mut self) {
        let now = self.now();
        let unmet = Unmet {
            nodes: self
                .unmet
                .iter()
                .map(|(node, seen)| (node.as_str(), seen.lease.as_ref()))
                .collect(),
            all: self.all,
            awaited: self.args.condition.state(),
        };
        let terminal = self.session.terminal;
        if let Some(width) = terminal.live_width() {
            terminal.live(&unmet.short(now, width));
        } else if unmet.are_many() {
            if std::mem::replace(&mut self.told_count, unmet.nodes.len()) != unmet.nodes.len() {
                terminal.remark(unmet.count());
            }
        } else {
            for &(node, lease) in &unmet.nodes {
                let known = Known::of(lease, now);
                if self.told.get(node) != Some(&known) {
                    terminal.remark(unmet.line_of(node, lease, now));
                    self.told.insert(node.to_owned(), known);
                }
            }
        }
    }

    /// Until when nothing changes by time alone, and nothing is to be read.
    fn wakes_at(&self) -> Instant {
        if self.leases.is_none() {
            return self.look_at;
        }
        let now = self.now();
        let next = self
            .unmet
            .values()
            .filter_map(|seen| seen.lease.as_ref()?.next_change(now))
            .min();
        let nap = next.map_or(LONGEST_NAP, |next| {
            (next - now.earliest).to_duration().min(LONGEST_NAP)
        });
        Instant::now() + nap
    }

    async fn take_in(&mut self, event: Result<LeaseEvent, Error>) {
        let (node, lease) = match event {
            Ok(WatchEvent::Listed(mut leases)) => {
                self.told_blind = false;
                let mut changed = Vec::new();
                for (node, seen) in &mut self.unmet {
                    let lease = leases.remove(node);
                    if seen.lease.is_some() && lease.is_none() {
                        changed.push(node.clone());
                    }
                    seen.lease = lease;
                }
                for node in changed {
                    self.look_for(&node).await;
                }
                return;
            }
            Ok(WatchEvent::Changed(lease)) => (lease.node().to_owned(), Some(lease)),
            Ok(WatchEvent::Deleted(lease)) => (lease.node().to_owned(), None),
            Err(error) => {
                if matches!(error, Error::MissingRight { .. }) {
                    self.leases = None;
                    self.look_at = Instant::now() + BLIND;
                }
                if !std::mem::replace(&mut self.told_blind, true) {
                    self.session
                        .terminal
                        .warn(waiting::blind(&error.to_string()));
                }
                return;
            }
        };
        self.told_blind = false;
        let is_gone = lease.is_none();
        match self.unmet.get_mut(&node) {
            Some(seen) => seen.lease = lease,
            None => return,
        }
        if is_gone {
            self.look_for(&node).await;
        }
    }

    /// A Lease goes with its Node: is that still there?
    async fn look_for(&mut self, node: &str) {
        if let Ok(row) = self.session.locks.see_node(node).await
            && let Some(seen) = self.unmet.get_mut(node)
        {
            seen.row = row;
        }
    }

    /// Reads each node that is waited for. What can't be read now is read the next time.
    async fn read_again(&mut self) {
        let locks = &self.session.locks;
        let parallel = usize::from(self.args.nodes.parallel);
        let nodes: Vec<String> = self.unmet.keys().cloned().collect();
        let read: Vec<Seen> = futures::stream::iter(nodes)
            .map(|node| async move { locks.see(&node, true).await.ok() })
            .buffer_unordered(parallel)
            .filter_map(ready)
            .collect()
            .await;
        for seen in read {
            self.unmet.insert(seen.node.clone(), seen);
        }
        self.look_at = Instant::now() + BLIND;
    }

    /// What is in the way of `node`.
    fn obstacle(&self, node: &str, seen: &Seen) -> Obstacle {
        let free = self.args.condition == Condition::Free;
        match self.session.locks.check_acquire(seen, &Acquire::new()) {
            Err(Error::Refused(refused)) if free => Obstacle::Refused(refused),
            _ => Obstacle::Stands {
                how: awaited::stands(node, seen.lease.as_ref(), self.now()),
                awaited: self.args.condition.state(),
                hint: None,
            },
        }
    }
}

async fn next_of(
    leases: &mut Option<BoxStream<'static, Result<LeaseEvent, Error>>>,
) -> Result<LeaseEvent, Error> {
    let event = match leases {
        Some(leases) => leases.next().await,
        None => None,
    };
    match event {
        Some(event) => event,
        None => pending().await,
    }
}

/// Completes when the line on a terminal is due to be shown anew, if there is one.
async fn tick(is_live: bool) {
    if is_live {
        tokio::time::sleep(TICK).await;
    } else {
        pending::<()>().await;
    }
}
