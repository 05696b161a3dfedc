//! Locks the nodes of a set: looks at all of them, tries to acquire them, and waits if others hold one.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};

use super::held_locks::{HeldLocks, has_little_time, verify_lock};
use super::look::look;
use super::options::{OnConflict, SetError, SetOptions, SetOutcome, SetProgress};
use super::stop::{GRACE, Stop, run_until, sleep_until};
use crate::bugs::{self, Bug};
use crate::cluster::change::DryRun;
use crate::cluster::reads::NodeAndLease;
use crate::keeper::{Lost, LostBy};
use crate::maintenance::Maintenance;
use crate::outcome::{Change, Done, Error, Refused};
use crate::protocol::{BootInstant, State};
use crate::target::Target;
use crate::waiting::{Contender, OLDEST_NODE};

/// A set being locked. A place is an index in the order of the nodes' names.
pub(super) struct Driver<'a, I, P> {
    pub(super) locks: &'a Maintenance,
    pub(super) options: &'a SetOptions,
    pub(super) manner: OnConflict,
    pub(super) targets: Vec<Target>,
    /// If it waits: one for each place.
    pub(super) contenders: Vec<Contender<'a>>,
    pub(super) taken: HeldLocks,
    /// Locks that are being released.
    pub(super) releasing: BTreeMap<usize, Change>,
    /// Acquisitions that replaced an expired lock and were released again.
    replaced: BTreeMap<usize, Change>,
    /// Why places are not locked.
    pub(super) failed: BTreeMap<usize, SetError>,
    /// The place that the present try was refused for now.
    refused: Option<usize>,
    /// The last place that was refused after all locks could be taken, and why.
    pub(super) obstacle: Option<(usize, Box<Refused>)>,
    /// When the time limit of the present try passes.
    try_ends: Option<BootInstant>,
    /// How many tries were refused after they had begun to write.
    pub(super) failed_tries: u32,
    pub(super) interrupt: Pin<&'a mut I>,
    /// Why it was stopped. The interrupt is not polled any more after that.
    pub(super) stop: Option<Stop>,
    pub(super) progress: P,
    pub(super) begun: BootInstant,
    /// When the last look began.
    looked: BootInstant,
    /// How many pauses of the machine had been suspected by then.
    suspected_pauses: u64,
    /// How many writes other calls had begun before.
    pub(super) writes_before: u64,
}

/// How a try ended.
enum Attempt {
    /// All are locked. If partial: those that can be.
    Done,
    /// This place was refused, for now.
    Refused(usize),
    Failed,
}

pub(super) enum Answer<'a> {
    Acquired(Result<Change, Error>),
    /// No change: the contender lost a race.
    Contended(Box<Contender<'a>>, Result<Option<Change>, Error>),
    Checked(Result<Change, Error>),
    Released(Result<(), Error>),
}

/// A request about one place.
pub(super) type Request<'a> = (usize, BoxFuture<'a, Answer<'a>>);

impl<'a, I, P> Driver<'a, I, P>
where
    I: Future<Output = ()>,
    P: FnMut(SetProgress<'_>) + Send,
{
    pub(super) fn new(
        locks: &'a Maintenance,
        mut targets: Vec<Target>,
        options: &'a SetOptions,
        interrupt: Pin<&'a mut I>,
        progress: P,
    ) -> Self {
        if !bugs::active(Bug::SetOrderNotKept) {
            targets.sort_by(|one, other| one.node.cmp(&other.node));
            targets.dedup_by(|one, other| one.node == other.node);
        }
        let manner = match options.manner {
            OnConflict::Waiting if locks.dry_run != DryRun::None => OnConflict::AtOnce,
            manner => manner,
        };
        let waiting = targets.iter().filter(|_| manner == OnConflict::Waiting);
        let contender = |target: &Target| Contender::new(locks, &target.node, options.goal());
        let begun = locks.api.env.boot();
        Self {
            locks,
            options,
            manner,
            contenders: waiting.map(contender).collect(),
            targets,
            taken: HeldLocks {
                locks: locks.clone(),
                places: BTreeMap::new(),
            },
            releasing: BTreeMap::new(),
            replaced: BTreeMap::new(),
            failed: BTreeMap::new(),
            refused: None,
            obstacle: None,
            try_ends: None,
            failed_tries: 0,
            interrupt,
            stop: None,
            progress,
            begun,
            looked: begun,
            suspected_pauses: locks.api.time.suspected_pauses(),
            writes_before: locks.api.open_writes.count(),
        }
    }

    pub(super) async fn run(mut self) -> SetOutcome {
        let is_done = self.lock().await;
        if !is_done {
            if !bugs::active(Bug::PartialSetKept) {
                self.give_back(|_| true).await;
            }
            // Their writes count as abandoned from here on.
            self.contenders.clear();
            self.settle_unanswered().await;
        }
        self.outcome(is_done)
    }

    async fn lock(&mut self) -> bool {
        if self.targets.is_empty() {
            return true;
        }
        let Some(mut blocked) = self.look().await else {
            return false;
        };
        loop {
            if blocked.is_empty() {
                match self.attempt().await {
                    Attempt::Done => return true,
                    Attempt::Failed => return false,
                    Attempt::Refused(at) => blocked.push(at),
                }
                self.failed_tries += 1;
                if !bugs::active(Bug::HeldWhileWaiting) && !self.give_back(|_| true).await {
                    return false;
                }
            }
            for at in std::mem::take(&mut blocked) {
                if !self.wait_for(at).await {
                    return false;
                }
            }
            // A single lock is acquired on the version that the wait ended with.
            if self.targets.len() > 1 {
                self.targets
                    .iter_mut()
                    .for_each(|target| target.seen = None);
                if !self.pause().await {
                    return false;
                }
                match self.look().await {
                    Some(others) => blocked = others,
                    None => return false,
                }
            }
        }
    }

    /// Looks at all nodes, and returns the places that can't be acquired yet. `None`: it failed.
    async fn look(&mut self) -> Option<Vec<usize>> {
        let is_blind = bugs::active(Bug::WritesWithoutLook) && self.targets.len() > 1;
        if self.manner == OnConflict::Partial || is_blind {
            return Some(Vec::new());
        }
        let read_begun = self.contenders.first().map(Contender::begin_read);
        let known = self.targets.iter_mut().map(|target| target.seen.take());
        let all = match known.collect::<Option<Vec<NodeAndLease>>>() {
            Some(all) => all,
            None => {
                let api = &self.locks.api;
                self.looked = api.env.boot();
                self.suspected_pauses = api.time.suspected_pauses();
                let nodes: Vec<String> = self.targets.iter().map(|it| it.node.clone()).collect();
                let (limit, looking) = (self.limit_of_requests(), look(self.locks, &nodes));
                match run_until(self.interrupt.as_mut(), &*api.env, limit, looking).await {
                    Ok(Ok(all)) => all,
                    Ok(Err(error)) => return self.look_failed(error),
                    Err(stop) => {
                        self.stopped(self.place_to_name(), stop);
                        return None;
                    }
                }
            }
        };
        for (at, seen) in all.into_iter().enumerate() {
            let checked = match (self.contenders.get_mut(at), read_begun) {
                (Some(contender), Some(begun)) => contender.read(seen.clone(), begun),
                _ => self.options.check(self.locks, &seen),
            };
            if let Err(error) = checked {
                self.failed.insert(at, error.into());
            }
            self.targets[at].seen = Some(seen);
        }
        if !self.failed.is_empty() {
            return None;
        }
        let clocks = self.locks.clocks();
        let mut blocked = Vec::new();
        for (at, contender) in self.contenders.iter_mut().enumerate() {
            if !self.taken.places.contains_key(&at) && !contender.may_try(clocks) {
                blocked.push(at);
            }
        }
        Some(blocked)
    }

    /// The first look fails for good; others are repeated if that may help.
    fn look_failed(&mut self, error: Error) -> Option<Vec<usize>> {
        let waited = match self.contenders.first_mut() {
            Some(contender) if contender.has_read() => contender.failed(error),
            _ => Err(error),
        };
        match waited {
            Ok(()) => Some(vec![0]),
            Err(error) => {
                self.failed.insert(0, error.into());
                None
            }
        }
    }

    /// Acquires all of them, and checks them at the end. Before each step, it renews what has little time left.
    async fn attempt(&mut self) -> Attempt {
        self.refused = None;
        self.try_ends = self.limit_of_requests();
        for places in self.steps() {
            self.check(BTreeSet::new()).await;
            if self.is_over() {
                break;
            }
            let requests: Vec<_> = places.into_iter().map(|at| self.acquire(at)).collect();
            for at in self.send(requests).await {
                let stop = self.stop.unwrap_or(Stop::TimedOut);
                self.stopped(at, stop);
            }
        }
        let held = self.taken.places.keys().copied();
        let waited = self.manner == OnConflict::Waiting && self.targets.len() > 1;
        self.check(held.filter(|_| waited).collect()).await;
        if self.manner == OnConflict::Partial {
            return self.keep_some().await;
        }
        if self.failed.is_empty() && self.stop == Some(Stop::TimedOut) {
            let mut places = 0..self.targets.len();
            let open = places.find(|at| !self.taken.places.contains_key(at));
            self.stopped(open.unwrap_or(0), Stop::TimedOut);
        }
        match self.refused {
            _ if self.stop.is_some() || !self.failed.is_empty() => Attempt::Failed,
            Some(at) => Attempt::Refused(at),
            None => Attempt::Done,
        }
    }

    /// Keeps the locks that succeeded, and releases what failed afterwards.
    async fn keep_some(&mut self) -> Attempt {
        while self.stop.is_none() {
            let failed: BTreeSet<usize> = self.failed.keys().copied().collect();
            self.give_back(|at| failed.contains(&at)).await;
            self.settle_unanswered().await;
            // That took time, which the others may have had little of.
            if self.due(&BTreeSet::new()).is_empty() {
                return Attempt::Done;
            }
            self.check(BTreeSet::new()).await;
        }
        Attempt::Failed
    }

    fn is_over(&self) -> bool {
        let has_failed = self.manner != OnConflict::Partial && !self.failed.is_empty();
        has_failed || self.refused.is_some() || self.stop.is_some()
    }

    /// The places that are acquired one after another, or at once. If a free one is refused, no trace of an expired lock is
    /// lost. The caller's own locks are last: they are rewritten once it has all others.
    fn steps(&self) -> Vec<Vec<usize>> {
        let places = (0..self.targets.len()).filter(|at| !self.taken.places.contains_key(at));
        let now = self.locks.server_time().now();
        let [mut free, mut expired, mut taken_over, mut own] = [const { Vec::new() }; 4];
        for at in places {
            let seen = self.targets[at].seen.as_ref();
            let lease = seen.and_then(|seen| seen.lease.as_ref());
            match lease.map_or(State::Free, |lease| lease.state(now)) {
                _ if self.manner == OnConflict::Partial => free.push(at),
                State::Free => free.push(at),
                State::Expired { .. } => expired.push(at),
                _ if bugs::active(Bug::DetailsWrittenAtOnce) => free.push(at),
                _ if lease.is_some_and(|lease| self.locks.is_own(lease)) => own.push(at),
                _ => taken_over.push(at),
            }
        }
        let groups = [free, expired, taken_over, own];
        match self.manner {
            OnConflict::Waiting => groups.into_iter().flatten().map(|at| vec![at]).collect(),
            OnConflict::Partial | OnConflict::AtOnce => groups.into(),
        }
    }

    fn acquire(&mut self, at: usize) -> Request<'a> {
        // A single waiter follows the Lease: if it lost the race for a version, it reads nothing.
        if self.targets.len() == 1
            && let Some(contender) = self.contenders.pop()
        {
            let mut contender = Box::new(contender);
            let attempting = async move {
                let attempted = contender.attempt().await;
                Answer::Contended(contender, attempted)
            };
            return (at, attempting.boxed());
        }
        let (locks, options, api) = (self.locks, self.options, &self.locks.api);
        let is_recent = api.env.boot().since(self.looked) <= OLDEST_NODE
            && api.time.suspected_pauses() == self.suspected_pauses;
        let target = &mut self.targets[at];
        // Else the Node may have been replaced or marked for deletion.
        let seen = target.seen.take().filter(|_| is_recent);
        let node = target.node.clone();
        let acquiring = async move {
            let plan = options.plan(locks, &node)?;
            locks.carry_out(Target { node, seen }, plan).await
        };
        (at, acquiring.map(Answer::Acquired).boxed())
    }

    /// Checks the locks in `unchecked`, and all that have little time left or are in doubt.
    async fn check(&mut self, mut unchecked: BTreeSet<usize>) {
        let env = self.locks.api.env.clone();
        let ends = env.boot().plus(self.options.duration().into());
        loop {
            let due = self.due(&unchecked);
            if due.is_empty() || self.is_over() {
                return;
            }
            if ends <= env.boot() {
                due.into_iter().for_each(|at| self.expired(at));
                return;
            }
            let mut requests = Vec::new();
            for at in due {
                let checking = verify_lock(self.locks, self.taken.places[&at].clone());
                requests.push((at, checking.map(Answer::Checked).boxed()));
            }
            self.send(requests).await;
            unchecked.clear();
        }
    }

    /// The locks that must be checked: with little time left or in doubt, and those in `unchecked`.
    fn due(&self, unchecked: &BTreeSet<usize>) -> Vec<usize> {
        let api = &self.locks.api;
        let (now, suspected_pauses) = (api.env.boot(), api.time.suspected_pauses());
        let is_due = |(at, change): &(&usize, &Change)| {
            !self.failed.contains_key(at)
                && (unchecked.contains(at)
                    || has_little_time(change, now)
                    || change.suspected_pauses != suspected_pauses)
        };
        let held = self.taken.places.iter();
        held.filter(|_| self.locks.dry_run == DryRun::None)
            .filter(is_due)
            .map(|(&at, _)| at)
            .collect()
    }

    /// Checking all of them took longer than they last.
    fn expired(&mut self, at: usize) {
        let lost = Lost {
            subject: self.locks.repository().subject(),
            node: self.targets[at].node.clone(),
            by: LostBy::Expiry,
            lease: None,
            problem: None,
        };
        self.failed.insert(at, Error::Lost(Arc::new(lost)).into());
    }

    /// Sends these requests. After an interrupt or the time limit, and for releases, it waits for two seconds for the next
    /// answer. Returns the places without an answer.
    pub(super) async fn send(&mut self, requests: Vec<Request<'a>>) -> BTreeSet<usize> {
        let env = self.locks.api.env.clone();
        let mut requests = requests.into_iter();
        let mut waiting = BTreeSet::new();
        let mut running = FuturesUnordered::new();
        loop {
            let releases = !self.releasing.is_empty();
            while running.len() < self.options.parallel
                && (releases || !self.is_over())
                && let Some((at, request)) = requests.next()
            {
                waiting.insert(at);
                running.push(request.map(move |answer| (at, answer)));
            }
            let goes_on = self.stop.is_none();
            let limit = self.try_ends.filter(|_| goes_on && !releases);
            tokio::select! {
                biased;
                next = running.next() => match next {
                    Some((at, answer)) => {
                        waiting.remove(&at);
                        self.answered(at, answer);
                    }
                    None => return waiting,
                },
                () = self.interrupt.as_mut(), if goes_on => self.stop = Some(Stop::Interrupted),
                () = sleep_until(&*env, limit) => self.stop = Some(Stop::TimedOut),
                () = env.sleep(GRACE), if releases || !goes_on => return waiting,
            }
        }
    }

    fn answered(&mut self, at: usize, answer: Answer<'a>) {
        match answer {
            Answer::Acquired(Ok(change)) | Answer::Checked(Ok(change)) => {
                self.taken.places.insert(at, change);
            }
            Answer::Acquired(Err(Error::Refused(refused))) if !self.contenders.is_empty() => {
                self.obstacle = Some((at, refused.clone()));
                match self.contenders[at].lost(refused) {
                    Ok(()) => self.refused = Some(at),
                    Err(error) => drop(self.failed.insert(at, error.into())),
                }
            }
            Answer::Contended(contender, attempted) => {
                self.contenders.push(*contender);
                match attempted {
                    Ok(Some(change)) => drop(self.taken.places.insert(at, change)),
                    Ok(None) => self.refused = Some(at),
                    Err(error) => drop(self.failed.insert(at, error.into())),
                }
            }
            // It belongs to somebody else now: do not release it.
            Answer::Checked(Err(Error::Refused(refused))) => {
                self.taken.places.remove(&at);
                let lost = Error::Lost(Arc::new((*refused).into()));
                self.failed.insert(at, lost.into());
            }
            Answer::Acquired(Err(error)) | Answer::Checked(Err(error)) => {
                self.failed.insert(at, error.into());
            }
            Answer::Released(result) => {
                let Some(change) = self.releasing.remove(&at) else {
                    return;
                };
                match result {
                    Ok(()) if matches!(change.state_before, State::Expired { .. }) => {
                        self.replaced.insert(at, change);
                    }
                    Ok(()) => {}
                    Err(Error::Unknown { .. }) => drop(self.releasing.insert(at, change)),
                    Err(error) => self.not_released(at, change, error),
                }
            }
        }
        (self.progress)(SetProgress {
            held: self.taken.places.len(),
            refused: self.failed.len(),
            all: self.targets.len(),
            waiting: None,
        });
    }

    fn outcome(mut self, is_done: bool) -> SetOutcome {
        let targets = &self.targets;
        let held = std::mem::take(&mut self.taken.places).into_iter();
        SetOutcome {
            held: held
                .filter(|(_, change)| is_done || change.done == Done::Acquired)
                .map(|(at, change)| (targets[at].node.clone(), change))
                .collect(),
            failed: named(targets, std::mem::take(&mut self.failed)),
            interrupted: self.stop == Some(Stop::Interrupted),
            replaced: named(targets, std::mem::take(&mut self.replaced)),
        }
    }
}

fn named<T>(targets: &[Target], by_place: BTreeMap<usize, T>) -> BTreeMap<String, T> {
    let by_place = by_place.into_iter();
    by_place
        .map(|(at, of)| (targets[at].node.clone(), of))
        .collect()
}
