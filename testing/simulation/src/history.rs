//! What happened in a world, in the order in which it happened.

mod display;

use std::sync::{Arc, Mutex, PoisonError};

use crate::fault::Fault;
use crate::time::{Time, TrueClock};

/// One of the world's clients; the first is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u8);

/// A call of the library by a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u32);

/// A request that a client sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

/// A span of time in which a client believes that it holds a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BeliefId(pub u32);

/// How a machine stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freeze {
    /// Its processes were stopped; all clocks and timers go on.
    Stopped,
    /// It sleeps: timers stand still, wall clock and boot clock go on.
    Suspended,
    /// It is a virtual machine whose host stopped it: timers and boot clock stand still; the wall
    /// clock is right when it goes on.
    Paused,
    /// The same, but nobody sets the wall clock afterwards: no local clock shows what happened.
    Halted,
}

/// One acquisition, told apart from every other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Acquisition {
    /// The Lease's uid.
    pub uid: Arc<str>,
    /// Who acquired.
    pub holder: Arc<str>,
    /// `leaseTransitions` at the time.
    pub transitions: u32,
    /// The nonce, if it has one.
    pub nonce: Option<Arc<str>>,
}

impl Acquisition {
    /// An administrator's hold.
    #[must_use]
    pub fn is_hold(&self) -> bool {
        self.holder.starts_with("kubeadm")
    }

    /// Whether `identity` acquired it, as a lease or as a hold.
    #[must_use]
    pub fn is_of(&self, identity: &str) -> bool {
        let holder = self.holder.strip_prefix("kubeadm:");
        holder.unwrap_or(&self.holder) == identity
    }
}

/// What the server stores of a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `holderIdentity`, if somebody holds it.
    pub holder: Option<Arc<str>>,
    /// `acquireTime`, in microseconds of Unix time.
    pub acquired: Option<i64>,
    /// `renewTime`, likewise.
    pub renewed: Option<i64>,
    /// `leaseDurationSeconds`.
    pub duration: u32,
    /// `leaseTransitions`.
    pub transitions: u32,
    /// The nonce.
    pub nonce: Option<Arc<str>>,
    /// The uid of the Node that owns it.
    pub owner: Option<Arc<str>>,
    /// The reason.
    pub reason: Option<Arc<str>>,
}

impl Record {
    /// When it ends, in microseconds of Unix time.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.renewed.or(self.acquired).unwrap_or(0) + i64::from(self.duration) * 1_000_000
    }

    /// The current acquisition, if any.
    #[must_use]
    pub fn acquisition(&self) -> Option<Acquisition> {
        self.holder.as_ref().map(|holder| Acquisition {
            uid: self.uid.clone(),
            holder: holder.clone(),
            transitions: self.transitions,
            nonce: self.nonce.clone(),
        })
    }
}

/// A call of the library by a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// The client acquires one node, for this many seconds.
    Acquire(u32),
    /// The client acquires several nodes with one call.
    AcquireAll(LockSet),
    /// The client runs for leader, for this many seconds at a time.
    Campaign(u32),
    /// A renewal; `Some`: only of this acquisition.
    Renew(Option<Acquisition>),
    /// A renewal that adds this many seconds to what is left; `Some`: only of this acquisition.
    Extend(u32, Option<Acquisition>),
    /// A release; `Some`: only of this acquisition.
    Release(Option<Acquisition>),
    /// A hold; `Some`: it takes over this acquisition of somebody else, which was confirmed.
    Hold(Option<Acquisition>),
    /// The end of a hold; `Some`: this hold of somebody else, which was confirmed.
    Unhold(Option<Acquisition>),
    /// The end of this acquisition of somebody else, which was confirmed.
    ForceRelease(Acquisition),
}

impl Call {
    /// Whether it may end somebody else's acquisition on purpose.
    #[must_use]
    pub fn is_break(&self) -> bool {
        matches!(
            self,
            Self::Hold(Some(_)) | Self::Unhold(Some(_)) | Self::ForceRelease(_)
        )
    }

    /// Whether it may end this acquisition on purpose.
    #[must_use]
    pub fn breaks(&self, acquisition: &Acquisition) -> bool {
        match self {
            Self::AcquireAll(set) => set.confirmed.contains(acquisition),
            _ => self.is_break(),
        }
    }
}

/// What a set does about locks that others hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// It keeps the locks that succeed.
    Partial,
    /// All or none, without waiting for holders.
    AtOnce,
    /// All or none. It waits for holders.
    Waiting,
}

/// Several nodes to be locked together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockSet {
    /// The nodes.
    pub nodes: Vec<Arc<str>>,
    /// For so many seconds each; `None`: they are put on hold.
    pub seconds: Option<u32>,
    /// What to do about others' locks.
    pub manner: OnConflict,
    /// Locks that the caller already has are renewed.
    pub reentry: bool,
    /// The locks of others that it may take over.
    pub confirmed: Vec<Acquisition>,
    /// The reason that the locks say.
    pub reason: Arc<str>,
}

impl LockSet {
    /// The nodes are put on hold.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.seconds.is_none()
    }

    /// A lock that the caller already has is no obstacle.
    #[must_use]
    pub fn accepts_own(&self) -> bool {
        self.reentry || self.holds()
    }
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// An acquisition began.
    Acquired {
        /// Which.
        acquisition: Acquisition,
        /// The fencing number.
        fencing: u64,
        /// The answer was lost; a read settled it.
        settled: bool,
    },
    /// An acquisition of each node began, or goes on if it was the caller's already. Not of each, if the
    /// set keeps those that succeed.
    AcquiredAll(Vec<(Arc<str>, Acquisition)>),
    /// An acquisition goes on.
    Renewed {
        /// Which.
        acquisition: Acquisition,
        /// The time that the renewal wrote, in microseconds of Unix time.
        renewed: i64,
    },
    /// Nobody holds it any more.
    Released {
        /// The answer was lost; a read settled it.
        settled: bool,
    },
    /// There was nothing to do, and nothing was written.
    Nothing,
    /// It was refused, or failed for good: nothing of it stands, now or later.
    Refused(String),
    /// It was refused because the caller's own identity holds the lock.
    HeldByCaller(String),
    /// It may have taken effect, or may yet.
    Unknown(String),
}

impl CallOutcome {
    /// The acquisitions that it says were begun or renewed, and of which nodes; `node` is that of the
    /// call.
    pub(crate) fn acquisitions<'a>(
        &'a self,
        node: &'a Arc<str>,
    ) -> Box<dyn Iterator<Item = (&'a Arc<str>, &'a Acquisition)> + 'a> {
        match self {
            Self::Acquired { acquisition, .. } | Self::Renewed { acquisition, .. } => {
                Box::new(std::iter::once((node, acquisition)))
            }
            Self::AcquiredAll(all) => {
                Box::new(all.iter().map(|(node, acquisition)| (node, acquisition)))
            }
            _ => Box::new(std::iter::empty()),
        }
    }
}

/// What ends a belief, unless its client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeliefEnd {
    /// Its client's boot clock, at this time.
    Deadline(Time),
    /// The library, which is asked before every step.
    Guard,
    /// The library, which tells its client: work that runs beside it goes on until then.
    Notification,
}

/// What happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// It never got there.
    Lost,
    /// It gets there long after its sender gave up.
    Late,
    /// It got there; the answer did not come back.
    AnswerLost,
    /// Something on the way refused it with this status.
    Refused(u16),
    /// It got there; something on the way answered with this status instead.
    AnsweredInstead(u16),
    /// Something on the way answered with a page of its own, with this status.
    Page(u16),
    /// It got there twice, since something on the way sent it again.
    Repeated,
    /// It got there; the body of its answer was cut short, as if it were complete.
    Truncated,
    /// The API server went down meanwhile.
    Cut,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Something worth reading and nothing to judge by.
    Note(String),
    /// A fault that no other event tells of.
    Struck {
        /// Which.
        fault: Fault,
        /// What it did.
        what: String,
    },
    /// A client's process panicked.
    Panicked {
        /// Whose.
        client: ClientId,
    },
    /// A client's process begins.
    Lives {
        /// Which.
        client: ClientId,
        /// Who it says it is.
        identity: Arc<str>,
    },
    /// A machine stands still.
    Froze {
        /// Whose.
        client: ClientId,
        /// How.
        how: Freeze,
    },
    /// It goes on.
    Thawed {
        /// Whose.
        client: ClientId,
    },
    /// A process ended without a word.
    Crashed {
        /// Whose.
        client: ClientId,
    },
    /// A wall clock was stepped.
    Stepped {
        /// Whose.
        client: ClientId,
        /// By so many microseconds.
        by: i64,
    },
    /// A client calls the library.
    Called {
        /// The call.
        op: OpId,
        /// By whom.
        client: ClientId,
        /// For which node.
        node: Arc<str>,
        /// What is called.
        call: Call,
    },
    /// A call ends.
    Returned {
        /// The call.
        op: OpId,
        /// How.
        ending: CallOutcome,
    },
    /// A request leaves a client.
    Sent {
        /// The request.
        request: RequestId,
        /// By whom.
        client: ClientId,
        /// During which call, if any.
        op: Option<OpId>,
        /// The node whose Lease it reads or writes, if it is about one alone.
        node: Option<Arc<str>>,
        /// Method and path.
        what: String,
    },
    /// The server's own answer to a request came back whole.
    Answered {
        /// The request.
        request: RequestId,
    },
    /// Something else than an answer happens to a request.
    RequestFailed {
        /// The request.
        request: RequestId,
        /// What.
        fault: RequestFault,
    },
    /// The server carried a request out, or refused to.
    Served {
        /// The request.
        request: RequestId,
        /// The status of its answer.
        status: u16,
        /// The resource version of the Lease that it wrote.
        wrote: Option<u64>,
    },
    /// A Lease changed.
    Committed {
        /// The node.
        node: Arc<str>,
        /// The resource version of the change.
        version: u64,
        /// The Lease as it is now; `None`: it is gone.
        lease: Option<Record>,
    },
    /// A Node changed.
    NodeChanged {
        /// Its name.
        node: Arc<str>,
        /// Its uid; `None`: it is gone.
        uid: Option<Arc<str>>,
        /// It is marked for deletion.
        terminating: bool,
    },
    /// A client begins to believe that it holds a node.
    Believes {
        /// The belief.
        belief: BeliefId,
        /// Who.
        client: ClientId,
        /// Which node.
        node: Arc<str>,
        /// By which acquisition.
        acquisition: Acquisition,
        /// What ends it, unless something else does.
        ends: BeliefEnd,
    },
    /// A client acts on a belief, after which it may go on acting.
    Acts {
        /// The belief.
        belief: BeliefId,
    },
    /// A belief ends.
    Ceases {
        /// The belief.
        belief: BeliefId,
        /// Why.
        why: &'static str,
    },
    /// A client gets the message that its lock is lost.
    Lost {
        /// Which.
        client: ClientId,
        /// The node.
        node: Arc<str>,
        /// What was kept.
        acquisition: Acquisition,
        /// It could not be renewed in time; else something happened to it.
        by_time: bool,
        /// In the library's words.
        how: String,
    },
    /// The clocks of the API servers, from here on.
    ServerClocks {
        /// How far each is ahead of the truth, in microseconds.
        ahead: Vec<i64>,
    },
    /// A client has this to say of the server's time, in microseconds of Unix time.
    Knows {
        /// Which.
        client: ClientId,
        /// No server's clock is behind this.
        earliest: i64,
        /// No server's clock is ahead of this, if it knows that.
        latest: Option<i64>,
    },
    /// A client got this as the list of all Leases.
    Listed {
        /// Which.
        client: ClientId,
        /// When it asked.
        since: Time,
        /// Their nodes.
        nodes: Vec<Arc<str>>,
    },
    /// No more faults from here on.
    Healed,
    /// A client that only waits begins to.
    Waits {
        /// Which.
        client: ClientId,
        /// It gets in until then.
        due: Time,
    },
    /// It got in.
    GotIn {
        /// Which.
        client: ClientId,
    },
}

/// An event and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Time,
    /// What.
    pub event: Event,
}

/// Writes a history; clones write the same one.
#[derive(Clone)]
pub(crate) struct Recorder {
    truth: TrueClock,
    log: Arc<Mutex<HistoryLog>>,
}

#[derive(Default)]
struct HistoryLog {
    entries: Vec<Entry>,
    ops: u32,
    requests: u32,
    beliefs: u32,
}

impl Recorder {
    /// An empty history.
    pub(crate) fn new(truth: TrueClock) -> Self {
        Self {
            truth,
            log: Arc::default(),
        }
    }

    /// Notes that `event` happens now.
    pub(crate) fn record(&self, event: Event) {
        let at = self.truth.now();
        self.log(|log| log.entries.push(Entry { at, event }));
    }

    /// The present.
    pub(crate) fn now(&self) -> Time {
        self.truth.now()
    }

    /// Notes a fault.
    pub(crate) fn struck(&self, fault: Fault, what: impl Into<String>) {
        let what = what.into();
        self.record(Event::Struck { fault, what });
    }

    /// How many writes have met another version than theirs so far.
    pub(crate) fn conflicts(&self) -> usize {
        let conflict = |entry: &&Entry| matches!(entry.event, Event::Served { status: 409, .. });
        self.log(|log| log.entries.iter().filter(conflict).count())
    }

    /// The number of the next call.
    pub(crate) fn next_op(&self) -> OpId {
        self.log(|log| {
            log.ops += 1;
            OpId(log.ops)
        })
    }

    /// The number of the next request.
    pub(crate) fn next_request(&self) -> RequestId {
        self.log(|log| {
            log.requests += 1;
            RequestId(log.requests)
        })
    }

    /// The number of the next belief.
    pub(crate) fn next_belief(&self) -> BeliefId {
        self.log(|log| {
            log.beliefs += 1;
            BeliefId(log.beliefs)
        })
    }

    /// All that was noted so far.
    pub(crate) fn take(&self) -> Vec<Entry> {
        self.log(|log| std::mem::take(&mut log.entries))
    }

    fn log<T>(&self, with: impl FnOnce(&mut HistoryLog) -> T) -> T {
        with(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
