//! The order in which sets acquire their locks, and that they hold nothing while they wait.

use std::sync::Arc;
use std::time::Duration;

use super::digest::{Commit, Index, Op, Request};
use super::rule::{Rule, Violation};
use crate::history::{Acquisition, Call, LockSet, OnConflict, OpId};
use crate::time::Time;

/// How long a set may hold a node and write nothing, while another node is not to be had.
const RELEASES: Duration = Duration::from_secs(5);

/// A node counts as free for a set if nobody held it for so long before.
const FREE: Duration = Duration::from_secs(30);

pub(super) fn check(digest: &Index, violations: &mut Vec<Violation>) {
    for (&id, op) in &digest.ops {
        let Call::AcquireAll(set) = &op.call else {
            continue;
        };
        let mut checker = Checker {
            digest,
            id,
            op,
            set,
            violations,
        };
        if set.manner != OnConflict::Partial {
            checker.looks_first();
        }
        if set.manner == OnConflict::Waiting {
            checker.name_order();
            checker.waits_with_nothing();
        }
    }
}

/// Checks one call.
struct Checker<'a> {
    digest: &'a Index,
    id: OpId,
    op: &'a Op,
    set: &'a LockSet,
    violations: &'a mut Vec<Violation>,
}

impl<'a> Checker<'a> {
    /// It begins to write only after a look at all nodes. A hold is checked, because it does not end by itself.
    fn looks_first(&mut self) {
        for commit in self.begun() {
            let looked = self.looked_before(commit);
            for node in self.set.nodes.iter().filter(|node| **node != commit.node) {
                let stood = self.stood(node, looked, commit.at);
                if let Some(hold) = stood.filter(|it| it.is_hold() && self.is_obstacle(it)) {
                    self.violated(
                        Rule::LooksFirst,
                        commit.at,
                        &format!("began {}, although {hold} stood there", commit.node),
                    );
                }
            }
        }
    }

    /// When it looked last before it made this change, or when its caller could have looked.
    fn looked_before(&self, commit: &Commit) -> Time {
        let by = commit.by.and_then(|by| self.digest.requests.get(&by));
        let sent = by.map_or(commit.at, |by| by.sent);
        let lists = self.requests().filter(|request| {
            let is_list = request.node.is_none() && request.what.contains("leases");
            is_list && !request.is_write() && !request.watches && request.sent < sent
        });
        let ops = self.digest.ops.values();
        let before = ops.filter(|op| op.client == self.op.client);
        let returned = before.filter_map(|op| op.returned.as_ref());
        let returned = returned.map(|(at, _)| *at);
        let idle = returned.filter(|at| *at <= self.op.called).max();
        let idle = idle.unwrap_or(Time::from_micros(0));
        lists.map(|list| list.sent).max().unwrap_or(idle)
    }

    /// The acquisition that stood from one time to the other.
    fn stood(&self, node: &Arc<str>, from: Time, to: Time) -> Option<Acquisition> {
        let of_node = self.digest.commits.iter().filter(|it| it.node == *node);
        let (before, rest): (Vec<_>, Vec<_>) = of_node.partition(|commit| commit.at <= from);
        let stood = before.last()?.acquisition_after()?;
        let mut meanwhile = rest.iter().filter(|commit| commit.at <= to);
        let goes_on = meanwhile.all(|it| it.acquisition_after().as_ref() == Some(&stood));
        goes_on.then_some(stood)
    }

    /// If it acquires one node after another while it has both, the second one has the later name, unless it was not free
    /// before.
    fn name_order(&mut self) {
        let digest = self.digest;
        let mut held: Vec<Acquisition> = Vec::new();
        let mut names: Vec<&Arc<str>> = Vec::new();
        for commit in &digest.commits {
            if let Some(place) = names.iter().position(|node| **node == commit.node) {
                names.remove(place);
                held.remove(place);
            }
            if !self.begins(commit) {
                continue;
            }
            if let Some(later) = names.iter().find(|node| ***node > commit.node)
                && self.was_free(commit)
            {
                let what = format!("acquired {} after {later}", commit.node);
                self.violated(Rule::NameOrder, commit.at, &what);
            }
            names.push(&commit.node);
            held.extend(commit.begins());
        }
    }

    /// Whether nobody held the node for long before the call, until this change.
    fn was_free(&self, commit: &Commit) -> bool {
        let of_node = self
            .digest
            .commits
            .iter()
            .filter(|it| it.node == commit.node);
        let earlier = of_node.take_while(|it| it.version < commit.version);
        let last_held = earlier
            .filter(|it| it.acquisition_before().is_some())
            .last();
        commit.acquisition_before().is_none()
            && last_held.is_none_or(|last| last.at + FREE < self.op.called)
    }

    /// It does not keep a node while it does nothing about another one that somebody holds.
    fn waits_with_nothing(&mut self) {
        let digest = self.digest;
        let end = self.op.returned.as_ref().map_or(digest.end, |(at, _)| *at);
        for commit in self.begun() {
            let own = commit.acquisition_after();
            let mut later = digest.commits.iter().filter(|it| it.node == commit.node);
            let ends = later.find(|it| it.at > commit.at && it.acquisition_after() != own);
            let until = ends.map_or(end, |it| it.at.min(end));
            let writes = self.requests().filter(|request| request.is_write());
            let writes = writes.filter(|write| write.sent < until);
            let idle = writes
                .map(|write| write.answered.unwrap_or(Time::NEVER))
                .max();
            let from = idle.unwrap_or(commit.at).max(commit.at);
            if from >= until || until < from + RELEASES {
                continue;
            }
            let to = from + RELEASES;
            let others = self.set.nodes.iter().filter(|node| **node != commit.node);
            let blocks = |node: &&Arc<str>| {
                let stood = self.stood(node, from, to);
                stood.is_some_and(|stood| self.is_obstacle(&stood))
            };
            // Without an answer to a read, it may not know of them.
            let is_unheard = |read: &Request| {
                !read.watches && read.answered.is_none() && commit.at < read.sent && read.sent < to
            };
            if self.requests().any(is_unheard) {
                continue;
            }
            let client = self.op.client;
            if let Some(other) = others.clone().find(blocks)
                && digest.stood_still(client, from, to).next().is_none()
            {
                let what = format!("keeps {} and waits for {other}", commit.node);
                self.violated(Rule::WaitsWithNothing, to, &what);
            }
        }
    }

    fn requests(&self) -> impl Iterator<Item = &'a Request> {
        let id = self.id;
        let requests = self.digest.requests.values();
        requests.filter(move |request| request.op == Some(id))
    }

    /// The changes with which the call began an acquisition.
    fn begun(&self) -> Vec<&'a Commit> {
        let commits = self.digest.commits.iter();
        commits.filter(|commit| self.begins(commit)).collect()
    }

    /// An acquisition begins with this change, and the call made it.
    fn begins(&self, commit: &Commit) -> bool {
        let made = self.digest.op_of(commit);
        commit.begins().is_some() && made.is_some_and(|(made, _)| made == self.id)
    }

    /// Whether it may not acquire a node that is held like this.
    fn is_obstacle(&self, held: &Acquisition) -> bool {
        let identity = self.digest.identities.get(&self.op.client);
        let is_own = identity.is_some_and(|identity| held.is_of(identity));
        !(is_own || self.set.confirmed.contains(held))
    }

    fn violated(&mut self, rule: Rule, at: Time, what: &str) {
        let (id, set) = (self.id.0, self.set);
        self.violations.push(Violation {
            at,
            rule,
            what: format!("op{id} ({set}) {what}"),
        });
    }
}
