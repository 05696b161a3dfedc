//! A history, sorted by what belongs together.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::history::{
    Acquisition, BeliefId, Call, ClientId, Ending, Entry, Event, Freeze, OpId, Record, RequestId,
};
use crate::time::Time;

/// A change of a Lease.
pub(super) struct Commit {
    pub(super) at: Time,
    pub(super) node: Arc<str>,
    pub(super) version: u64,
    pub(super) before: Option<Record>,
    pub(super) after: Option<Record>,
    /// The request that made it; `None`: it came from outside.
    pub(super) by: Option<RequestId>,
    /// Requests that found it as they would have made it.
    pub(super) also_by: Vec<RequestId>,
}

impl Commit {
    pub(super) fn acquisition_before(&self) -> Option<Acquisition> {
        self.before.as_ref().and_then(Record::acquisition)
    }

    pub(super) fn acquisition_after(&self) -> Option<Acquisition> {
        self.after.as_ref().and_then(Record::acquisition)
    }

    /// The acquisition that begins with it.
    pub(super) fn begins(&self) -> Option<Acquisition> {
        self.acquisition_after()
            .filter(|after| self.acquisition_before().as_ref() != Some(after))
    }
}

/// A request of a client's.
pub(super) struct Request {
    pub(super) client: ClientId,
    pub(super) op: Option<OpId>,
    pub(super) sent: Time,
}

/// A call of a client's.
pub(super) struct Op {
    pub(super) client: ClientId,
    pub(super) node: Arc<str>,
    pub(super) call: Call,
    pub(super) called: Time,
    pub(super) returned: Option<(Time, Ending)>,
}

/// What a client was told of an acquisition that it kept.
pub(super) struct Loss {
    pub(super) at: Time,
    pub(super) client: ClientId,
    pub(super) node: Arc<str>,
    pub(super) acquisition: Acquisition,
}

/// A belief of a client's, and when it could act on it.
pub(super) struct Belief {
    pub(super) client: ClientId,
    pub(super) node: Arc<str>,
    pub(super) acquisition: Acquisition,
    pub(super) spans: Vec<(Time, Time)>,
    until: Option<Time>,
    /// When it was acted on last.
    acted: Time,
    /// Its client's timers stood still meanwhile. They end too late from there on; that no step is
    /// taken does not depend on them.
    timers_late: bool,
    /// The span that goes on.
    open: Option<Time>,
    over: bool,
}

/// Everything, by its number.
#[derive(Default)]
pub(super) struct Digest {
    pub(super) commits: Vec<Commit>,
    pub(super) requests: BTreeMap<RequestId, Request>,
    pub(super) ops: BTreeMap<OpId, Op>,
    pub(super) beliefs: BTreeMap<BeliefId, Belief>,
    /// Whose boot clock stood still, and since when.
    pub(super) pauses: Vec<(ClientId, Time)>,
    pub(super) identities: BTreeMap<ClientId, Arc<str>>,
    /// Losses by something that happened.
    pub(super) losses: Vec<Loss>,
    /// When clients that wait must be in, and which wait, since when, until when.
    pub(super) due: Option<Time>,
    pub(super) waits: BTreeMap<ClientId, (Time, Option<Time>)>,
    pub(super) end: Time,
}

impl Digest {
    pub(super) fn of(history: &[Entry]) -> Self {
        let mut digest = Self::default();
        let mut written: BTreeMap<u64, Vec<RequestId>> = BTreeMap::new();
        for Entry { at, event } in history {
            if let Event::Served {
                request,
                wrote: Some(version),
                ..
            } = event
            {
                // A patch that changes nothing answers with the version that is there.
                written.entry(*version).or_default().push(*request);
            }
            digest.note(*at, event);
            digest.end = *at;
        }
        for commit in &mut digest.commits {
            let mut by = written
                .remove(&commit.version)
                .unwrap_or_default()
                .into_iter();
            commit.by = by.next();
            commit.also_by = by.collect();
        }
        let end = digest.end;
        for belief in digest.beliefs.values_mut() {
            belief.close(end);
        }
        digest
    }

    /// The call that made a change, if a call did.
    pub(super) fn op_of(&self, commit: &Commit) -> Option<(OpId, &Op)> {
        let op = self.requests.get(&commit.by?)?.op?;
        Some((op, self.ops.get(&op)?))
    }

    /// A write takes effect after the call that it belongs to ended.
    pub(super) fn comes_late(&self, commit: &Commit, returned: Time) -> bool {
        commit.at > returned && !self.is_let_in(commit)
    }

    /// A write creates the Lease where another of that name, which had made it fail, was deleted after it
    /// was sent. A creation stands on no version, so that nothing makes it fail for good.
    pub(super) fn is_let_in(&self, commit: &Commit) -> bool {
        let request = commit.by.and_then(|by| self.requests.get(&by));
        request.is_some_and(|request| {
            commit.before.is_none()
                && self.commits.iter().any(|other| {
                    other.node == commit.node
                        && other.after.is_none()
                        && (request.sent..=commit.at).contains(&other.at)
                })
        })
    }

    /// The requests of `client` that made a change or found it made.
    pub(super) fn requests_of(
        &self,
        client: ClientId,
        commit: &Commit,
    ) -> impl Iterator<Item = &Request> {
        let all = commit.by.iter().chain(&commit.also_by);
        all.filter_map(|request| self.requests.get(request))
            .filter(move |request| request.client == client)
    }

    fn note(&mut self, at: Time, event: &Event) {
        match event {
            Event::Lives { client, identity } => {
                self.identities.insert(*client, identity.clone());
            }
            Event::Froze { client, how } => {
                if *how == Freeze::Paused {
                    self.pauses.push((*client, at));
                }
                for belief in self.of_client(*client) {
                    belief.close(at);
                    belief.timers_late |= *how != Freeze::Stopped;
                }
            }
            Event::Thawed { client } => {
                for belief in self.of_client(*client) {
                    belief.thaw(at);
                }
            }
            Event::Crashed { client } => {
                for belief in self.of_client(*client) {
                    belief.close(at);
                    belief.over = true;
                }
            }
            Event::Called {
                op,
                client,
                node,
                call,
            } => {
                self.ops.insert(
                    *op,
                    Op {
                        client: *client,
                        node: node.clone(),
                        call: call.clone(),
                        called: at,
                        returned: None,
                    },
                );
            }
            Event::Returned { op, ending } => {
                if let Some(op) = self.ops.get_mut(op) {
                    op.returned = Some((at, ending.clone()));
                }
            }
            Event::Sent {
                request,
                client,
                op,
                ..
            } => {
                self.requests.insert(
                    *request,
                    Request {
                        client: *client,
                        op: *op,
                        sent: at,
                    },
                );
            }
            Event::Committed {
                node,
                version,
                lease,
            } => {
                let last = self
                    .commits
                    .iter()
                    .rev()
                    .find(|commit| commit.node == *node);
                let before = last.and_then(|commit| commit.after.clone());
                self.commits.push(Commit {
                    at,
                    node: node.clone(),
                    version: *version,
                    before,
                    after: lease.clone(),
                    by: None,
                    also_by: Vec::new(),
                });
            }
            Event::Believes {
                belief,
                client,
                node,
                acquisition,
                until,
            } => {
                self.beliefs.insert(
                    *belief,
                    Belief {
                        client: *client,
                        node: node.clone(),
                        acquisition: acquisition.clone(),
                        spans: Vec::new(),
                        until: *until,
                        acted: at,
                        timers_late: false,
                        open: Some(at),
                        over: false,
                    },
                );
            }
            Event::Acts { belief } => {
                if let Some(belief) = self.beliefs.get_mut(belief) {
                    belief.act(at);
                }
            }
            Event::Ceases { belief, .. } => {
                if let Some(belief) = self.beliefs.get_mut(belief) {
                    belief.close(at);
                    belief.over = true;
                }
            }
            Event::Lost {
                client,
                node,
                acquisition,
                by_time,
                ..
            } => {
                if !by_time {
                    self.losses.push(Loss {
                        at,
                        client: *client,
                        node: node.clone(),
                        acquisition: acquisition.clone(),
                    });
                }
            }
            Event::Healed { due } => self.due = Some(*due),
            Event::Waits {
                client,
                done: false,
            } => {
                self.waits.insert(*client, (at, None));
            }
            Event::Waits { client, done: true } => {
                if let Some((_, got_in)) = self.waits.get_mut(client) {
                    *got_in = Some(at);
                }
            }
            Event::Note(_)
            | Event::Struck { .. }
            | Event::Stepped { .. }
            | Event::Mishap { .. }
            | Event::Served { .. } => {}
        }
    }

    fn of_client(&mut self, client: ClientId) -> impl Iterator<Item = &mut Belief> {
        self.beliefs
            .values_mut()
            .filter(move |belief| belief.client == client)
    }
}

impl Belief {
    /// Nothing is done on it from `at` on.
    fn close(&mut self, at: Time) {
        if let Some(from) = self.open.take() {
            let end = if self.timers_late { self.acted } else { at };
            let to = self.until.map_or(end, |until| until.min(at));
            if from < to {
                self.spans.push((from, to));
            }
        }
    }

    /// The machine goes on. Who goes by its own clock looks at it first; who acts says so.
    fn thaw(&mut self, at: Time) {
        if !self.over && self.until.is_some_and(|until| until > at) {
            self.open.get_or_insert(at);
        }
    }

    fn act(&mut self, at: Time) {
        if !self.over {
            self.acted = at;
            self.open.get_or_insert(at);
        }
    }
}
