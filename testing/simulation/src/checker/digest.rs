//! A history, sorted by what belongs together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::history::{
    Acquisition, BeliefEnd, BeliefId, Call, CallOutcome, ClientId, Entry, Event, Freeze, OpId,
    Record, RequestId,
};
use crate::time::Time;

/// How often keepers look at the clocks, and a little more.
pub(super) const LOOK: Duration = Duration::from_millis(1_100);

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

    /// Whether it goes on with an acquisition.
    pub(super) fn renews(&self) -> bool {
        self.acquisition_after().is_some() && self.begins().is_none()
    }
}

/// A request of a client's.
pub(super) struct Request {
    pub(super) client: ClientId,
    pub(super) op: Option<OpId>,
    pub(super) sent: Time,
    /// The node whose Lease it is about, if it is about a single one.
    pub(super) node: Option<Arc<str>>,
    /// Method, path and version: copies of a write have the same.
    pub(super) what: String,
    /// It watches.
    pub(super) watches: bool,
    /// When the server's own answer came back whole.
    pub(super) answered: Option<Time>,
}

impl Request {
    pub(super) fn is_write(&self) -> bool {
        !self.what.starts_with("GET")
    }
}

/// A call of a client's.
pub(super) struct Op {
    pub(super) client: ClientId,
    pub(super) node: Arc<str>,
    pub(super) call: Call,
    pub(super) called: Time,
    pub(super) returned: Option<(Time, CallOutcome)>,
}

impl Op {
    /// It has to do with this node.
    pub(super) fn is_about(&self, node: &Arc<str>) -> bool {
        match &self.call {
            Call::AcquireAll(set) => set.nodes.contains(node),
            _ => self.node == *node,
        }
    }
}

/// What a client says of the server's time.
pub(super) struct TimeEstimate {
    pub(super) at: Time,
    pub(super) client: ClientId,
    pub(super) earliest: i64,
    pub(super) latest: Option<i64>,
}

/// A time in which a machine stood still.
pub(super) struct MachinePause {
    pub(super) client: ClientId,
    pub(super) how: Freeze,
    pub(super) from: Time,
    /// When it went on.
    pub(super) to: Time,
}

/// All Leases, as reported to a client.
pub(super) struct Listed {
    pub(super) at: Time,
    pub(super) client: ClientId,
    pub(super) since: Time,
    pub(super) nodes: Vec<Arc<str>>,
}

/// What was reported to a client about an acquisition that it kept.
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
    pub(super) ends: BeliefEnd,
    pub(super) begun: Time,
    /// When its client ended it, or was ended.
    pub(super) over_at: Option<Time>,
    /// When it was acted on.
    pub(super) acts: Vec<Time>,
    /// When it was acted on last.
    acted: Time,
    /// Its client's timers stood still meanwhile. They end too late from there on; that no step is
    /// taken does not depend on them.
    timers_late: bool,
    /// The span that goes on.
    open: Option<Time>,
}

/// A time in which a Node existed and was not marked for deletion.
pub(super) struct NodeSpan {
    pub(super) node: Arc<str>,
    pub(super) uid: Arc<str>,
    pub(super) from: Time,
    pub(super) to: Time,
}

/// Everything, by its number.
#[derive(Default)]
pub(super) struct Index {
    pub(super) commits: Vec<Commit>,
    pub(super) nodes: Vec<NodeSpan>,
    pub(super) requests: BTreeMap<RequestId, Request>,
    pub(super) ops: BTreeMap<OpId, Op>,
    pub(super) beliefs: BTreeMap<BeliefId, Belief>,
    pub(super) standstills: Vec<MachinePause>,
    /// When each client's latest process began.
    pub(super) lives: Vec<(ClientId, Time)>,
    /// The clocks of the API servers, and since when.
    pub(super) server_clocks: Vec<(Time, Vec<i64>)>,
    pub(super) known: Vec<TimeEstimate>,
    pub(super) listed: Vec<Listed>,
    /// Requests to which something else happened than an answer.
    pub(super) faulty_requests: BTreeSet<RequestId>,
    pub(super) healed: Option<Time>,
    pub(super) panics: Vec<(Time, ClientId)>,
    pub(super) identities: BTreeMap<ClientId, Arc<str>>,
    /// Losses by something that happened.
    pub(super) losses: Vec<Loss>,
    /// When clients that wait must be in, and when they were.
    pub(super) waits: BTreeMap<ClientId, (Time, Option<Time>)>,
    pub(super) end: Time,
    /// Whose clocks all stood still: since when it goes on, and when an answer showed what happened.
    unaware: BTreeMap<ClientId, (Time, Option<Time>)>,
}

impl Index {
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
        for standstill in &mut digest.standstills {
            standstill.to = standstill.to.min(end);
        }
        digest
    }

    /// The call that made a change, if a call did.
    pub(super) fn op_of(&self, commit: &Commit) -> Option<(OpId, &Op)> {
        let id = self.requests.get(&commit.by?)?.op?;
        // What is kept is renewed during calls for other nodes, too.
        let op = self.ops.get(&id).filter(|op| op.is_about(&commit.node))?;
        Some((id, op))
    }

    /// What this client's clocks went through between two times.
    pub(super) fn stood_still(
        &self,
        client: ClientId,
        from: Time,
        to: Time,
    ) -> impl Iterator<Item = &MachinePause> {
        let within = move |still: &&MachinePause| {
            still.client == client && still.from <= to && still.to >= from
        };
        self.standstills.iter().filter(within)
    }

    /// By how much the clocks of the API servers were stepped back since `at`.
    pub(super) fn stepped_back_since(&self, at: Time) -> Duration {
        let first = |ahead: &[i64]| ahead.first().copied().unwrap_or(0);
        let last = self.server_clocks.last();
        let last = last.map_or(0, |(_, ahead)| first(ahead));
        let back = first(self.servers_ahead(at)) - last;
        Duration::from_micros(u64::try_from(back).unwrap_or(0))
    }

    /// How far the clocks of the API servers were ahead at `at`.
    pub(super) fn servers_ahead(&self, at: Time) -> &[i64] {
        let since = |(since, _): &&(Time, Vec<i64>)| *since <= at;
        let clocks = self.server_clocks.iter().rfind(since);
        clocks.map_or(&[0], |(_, ahead)| ahead)
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
                self.lives.push((*client, at));
                self.unaware.remove(client);
            }
            Event::Froze { client, how } => {
                self.standstills.push(MachinePause {
                    client: *client,
                    how: *how,
                    from: at,
                    to: Time::NEVER,
                });
                if *how == Freeze::Halted {
                    self.unaware.insert(*client, (at, None));
                }
                for belief in self.of_client(*client) {
                    belief.close(at);
                    belief.timers_late |= *how != Freeze::Stopped;
                }
            }
            Event::Thawed { client } => {
                let mut all = self.standstills.iter_mut().rev();
                if let Some(still) = all.find(|still| still.client == *client) {
                    still.to = at;
                }
                if let Some((since, None)) = self.unaware.get_mut(client) {
                    *since = at;
                }
                for belief in self.of_client(*client) {
                    belief.thaw(at);
                }
            }
            Event::Panicked { client } => self.panics.push((at, *client)),
            Event::Crashed { client } => {
                for belief in self.of_client(*client) {
                    belief.end(at);
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
                node,
                what,
            } => {
                self.requests.insert(
                    *request,
                    Request {
                        client: *client,
                        op: *op,
                        sent: at,
                        node: node.clone(),
                        watches: what.ends_with(" watch"),
                        what: what.clone(),
                        answered: None,
                    },
                );
            }
            Event::Answered { request } => {
                let Some(request) = self.requests.get_mut(request) else {
                    return;
                };
                request.answered = Some(at);
                if let Some((since, noticed @ None)) = self.unaware.get_mut(&request.client)
                    && request.sent >= *since
                {
                    *noticed = Some(at);
                }
            }
            Event::RequestFailed { request, .. } => {
                self.faulty_requests.insert(*request);
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
            Event::NodeChanged {
                node,
                uid,
                terminating,
            } => {
                let is_last = |span: &&mut NodeSpan| span.node == *node && span.to == Time::NEVER;
                let last = self.nodes.iter_mut().find(is_last);
                let uid = uid.clone().filter(|_| !terminating);
                match (last, uid) {
                    (Some(last), Some(uid)) if last.uid == uid => {}
                    (last, uid) => {
                        if let Some(last) = last {
                            last.to = at;
                        }
                        self.nodes.extend(uid.map(|uid| NodeSpan {
                            node: node.clone(),
                            uid,
                            from: at,
                            to: Time::NEVER,
                        }));
                    }
                }
            }
            Event::Believes {
                belief,
                client,
                node,
                acquisition,
                ends,
            } => {
                let is_aware = self.is_aware(*client, at);
                self.beliefs.insert(
                    *belief,
                    Belief {
                        client: *client,
                        node: node.clone(),
                        acquisition: acquisition.clone(),
                        spans: Vec::new(),
                        ends: *ends,
                        begun: at,
                        over_at: None,
                        acts: vec![at],
                        acted: at,
                        timers_late: false,
                        open: is_aware.then_some(at),
                    },
                );
            }
            Event::Acts { belief } => {
                let client = self.beliefs.get(belief).map(|belief| belief.client);
                let is_aware = client.is_some_and(|client| self.is_aware(client, at));
                let late = client.is_some_and(|client| self.has_just_gone_on(client, at));
                if let Some(belief) = self.beliefs.get_mut(belief) {
                    belief.acts.push(at);
                    // What runs beside the keeper is stopped by its word.
                    if is_aware && !(belief.ends == BeliefEnd::Notification && late) {
                        belief.act(at);
                    }
                }
            }
            Event::Ceases { belief, .. } => {
                if let Some(belief) = self.beliefs.get_mut(belief) {
                    belief.end(at);
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
            Event::ServerClocks { ahead } => self.server_clocks.push((at, ahead.clone())),
            Event::Knows {
                client,
                earliest,
                latest,
            } => self.known.push(TimeEstimate {
                at,
                client: *client,
                earliest: *earliest,
                latest: *latest,
            }),
            Event::Listed {
                client,
                since,
                nodes,
            } => self.listed.push(Listed {
                at,
                client: *client,
                since: *since,
                nodes: nodes.clone(),
            }),
            Event::Healed => self.healed = Some(at),
            Event::Waits { client, due } => {
                self.waits.insert(*client, (*due, None));
            }
            Event::GotIn { client } => {
                if let Some((_, got_in)) = self.waits.get_mut(client) {
                    *got_in = Some(at);
                }
            }
            Event::Note(_)
            | Event::Struck { .. }
            | Event::Stepped { .. }
            | Event::Served { .. } => {}
        }
    }

    /// Since all of its clocks stood still, an answer came that shows it, and its keepers had the time
    /// to look at that.
    fn is_aware(&self, client: ClientId, at: Time) -> bool {
        self.unaware
            .get(&client)
            .is_none_or(|(_, noticed)| noticed.is_some_and(|noticed| noticed + LOOK < at))
    }

    /// A machine went on so short a while ago that its keepers did not look at the clocks yet.
    pub(super) fn has_just_gone_on(&self, client: ClientId, at: Time) -> bool {
        let of_client = |still: &&MachinePause| still.client == client;
        let last = self
            .standstills
            .iter()
            .rfind(|still| of_client(still) && still.to <= at);
        last.is_some_and(|still| at < still.to + LOOK)
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
            let to = self.until().map_or(end, |until| until.min(at));
            if from < to {
                self.spans.push((from, to));
            }
        }
    }

    fn until(&self) -> Option<Time> {
        match self.ends {
            BeliefEnd::Deadline(until) => Some(until),
            BeliefEnd::Guard | BeliefEnd::Notification => None,
        }
    }

    /// It ends.
    fn end(&mut self, at: Time) {
        self.close(at);
        self.over_at.get_or_insert(at);
    }

    /// The machine goes on. Who goes by its own clock looks at it first; who acts says so.
    fn thaw(&mut self, at: Time) {
        if self.over_at.is_none() && self.until().is_some_and(|until| until > at) {
            self.open.get_or_insert(at);
        }
    }

    fn act(&mut self, at: Time) {
        if self.over_at.is_none() {
            self.acted = at;
            self.open.get_or_insert(at);
        }
    }
}
