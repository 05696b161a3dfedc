//! The promises of the library, and how one is broken.

use std::fmt;
use std::time::Duration;

use crate::time::Time;

/// How far clients' estimates of the server's time may be apart.
pub(super) const CLOCK_BUDGET: Duration = Duration::from_secs(3);

/// What the library promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// No two clients believe at once that they hold a node, but where the lock of the first was
    /// broken before.
    OneBeliever,
    /// Belief rests on a write of the believer's that was committed, for no longer than from before
    /// it was sent until its duration later.
    Founded,
    /// What is acknowledged was committed, once, between the call and its end.
    Acknowledged,
    /// What was refused does not stand, now or later.
    Refused,
    /// Every acquisition counts one up, and nothing else counts.
    Transitions,
    /// Fencing numbers rise from acquisition to acquisition.
    Fencing,
    /// A lease is taken from its holder only after its end, and a hold never.
    TakenInTime,
    /// A lock is taken over only if exactly that acquisition was confirmed. Releases and renewals change
    /// only the caller's own acquisition, and only the given one if one was given.
    Meant,
    /// The Node that owns a lock is one that its client could have read when it decided: it existed and was not
    /// marked for deletion. The owner of a lock is not replaced by an earlier Node.
    Owner,
    /// An extension adds its time once.
    AddedOnce,
    /// Once a release is asked for, nothing is renewed any more.
    Released,
    /// What is said to be lost is lost.
    Lost,
    /// Who waits gets in, within a bound once faults are over, whether for one node or for several that
    /// others want, too.
    Progress,
    /// What is known of the server's time is an interval whose ends are in order, and some server's
    /// time is in it.
    Interval,
    /// For as long as somebody believes in a lease, it has not ended for others.
    Covered,
    /// Success is reported with at least a third of the duration left.
    TimeLeft,
    /// After a pause, nothing begins and nothing goes on before a check was answered.
    NoWorkInDoubt,
    /// After a pause, a check is sent at once.
    Checked,
    /// What was said of a lock is so: nothing stands that was said to be free, and a lock that is said
    /// to be the caller's was acquired by another attempt.
    Reported,
    /// What somebody broke is not taken again by the same attempt.
    NotRetaken,
    /// All of a set are acquired, or none.
    AllOrNone,
    /// A set releases nothing that its caller had before.
    LeftAsFound,
    /// A set leaves the reasons of its caller's earlier locks as they are until it has all nodes.
    DetailsKept,
    /// A set writes nothing while others hold one of its nodes.
    LooksFirst,
    /// A set that waits acquires free nodes in the order of their names.
    NameOrder,
    /// A set that waits for a node holds no other one.
    WaitsWithNothing,
    /// A list that is said to be complete is.
    Listed,
    /// Nobody sends more requests than so many in a minute.
    Requests,
    /// Nothing panics.
    NoPanic,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When.
    pub at: Time,
    /// Which.
    pub rule: Rule,
    /// How.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {:?}: {}", self.at, self.rule, self.what)
    }
}
