//! A node's maintenance Lease as people and programs see it: with strings and `chrono` times.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cluster::wire;
use crate::notes::Notes;
use crate::protocol::identity::hold_identity;
use crate::protocol::{
    Flags, Holder, Instant, Lease, LockId, Names, Now, Span, State, Version, flags, next_change,
    report_limit, state, takeover,
};
use crate::repository::Repository;

/// A node's maintenance Lease, as read at one resource version.
///
/// It accepts everything that the server stores, including what other tools wrote. Every field except the
/// name may be missing.
#[derive(Clone, Debug)]
pub struct NodeLease {
    pub(crate) node: String,
    pub(crate) uid: String,
    pub(crate) version: Version,
    pub(crate) holder: Option<String>,
    pub(crate) acquired: Option<Instant>,
    pub(crate) renewed: Option<Instant>,
    pub(crate) duration: u32,
    pub(crate) transitions: u32,
    pub(crate) elected: bool,
    pub(crate) deleting: bool,
    /// The holder is an administrator.
    pub(crate) admin: bool,
    /// It lacks a label of the repository that it was read from.
    pub(crate) foreign: bool,
    pub(crate) owners: Option<Box<RawValue>>,
    pub(crate) notes: Notes,
}

/// The JSON form, with only the fields that we need.
#[derive(Deserialize)]
struct WireLease<'a> {
    #[serde(borrow)]
    metadata: WireMetadata<'a>,
    #[serde(borrow, default)]
    spec: Option<WireSpec<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMetadata<'a> {
    name: String,
    #[serde(default)]
    uid: String,
    #[serde(borrow, default)]
    resource_version: Cow<'a, str>,
    #[serde(borrow, default)]
    deletion_timestamp: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    labels: Option<&'a RawValue>,
    #[serde(default)]
    annotations: Option<Notes>,
    #[serde(default)]
    owner_references: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireSpec<'a> {
    holder_identity: Option<String>,
    #[serde(borrow, default)]
    acquire_time: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    renew_time: Option<Cow<'a, str>>,
    lease_duration_seconds: Option<i64>,
    lease_transitions: Option<i64>,
    #[serde(borrow, default)]
    strategy: Option<Cow<'a, str>>,
}

impl NodeLease {
    /// Reads a Lease of `repository` from the server's JSON.
    ///
    /// # Errors
    /// If it is not a Lease, or its resource version is not a number.
    pub(crate) fn from_json(json: &[u8], repository: &Repository) -> Result<Self, String> {
        let wire: WireLease<'_> =
            serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let spec = wire.spec.unwrap_or_default();
        // An object from a dry run has none.
        let version = Some(&*wire.metadata.resource_version)
            .filter(|version| !version.is_empty())
            .unwrap_or("0")
            .parse()
            .map(Version)
            .map_err(|_| {
                format!(
                    "resourceVersion {:?} of Lease {} is not a number",
                    wire.metadata.resource_version, wire.metadata.name
                )
            })?;
        let whole =
            |value: Option<i64>| u32::try_from(value.unwrap_or(0).max(0)).unwrap_or(u32::MAX);
        let holder = spec.holder_identity.filter(|holder| !holder.is_empty());
        let transitions = whole(spec.lease_transitions);
        Ok(Self {
            node: wire.metadata.name,
            uid: wire.metadata.uid,
            version,
            admin: holder
                .as_deref()
                .is_some_and(|holder| repository.is_admin(holder)),
            holder,
            acquired: spec.acquire_time.map(|time| wire::parse(&time)),
            renewed: spec.renew_time.map(|time| wire::parse(&time)),
            duration: whole(spec.lease_duration_seconds),
            transitions,
            elected: spec.strategy.is_some_and(|strategy| !strategy.is_empty()),
            deleting: wire.metadata.deletion_timestamp.is_some(),
            foreign: !carries(wire.metadata.labels, repository.labels()),
            owners: wire.metadata.owner_references,
            notes: wire
                .metadata
                .annotations
                .unwrap_or_default()
                .of_count(transitions),
        })
    }

    /// The Lease as the rules see it.
    #[must_use]
    pub fn reduced(&self, names: &mut Names) -> Lease {
        Lease {
            uid: names.id(&self.uid),
            version: self.version,
            holder: self.holder.as_deref().map(|holder| Holder {
                id: names.id(holder),
                admin: self.admin,
            }),
            acquired: self.acquired,
            renewed: self.renewed,
            duration: self.duration,
            transitions: self.transitions,
            nonce: self.notes.nonce.as_deref().map(|nonce| names.id(nonce)),
            ended: self.notes.ended().map(|nonce| names.id(nonce)),
            elected: self.elected,
            deleting: self.deleting,
            foreign: self.foreign,
        }
    }

    /// The Lease's state at `now`.
    #[must_use]
    pub fn state(&self, now: Now) -> State {
        state(Some(&self.reduced(&mut Names::default())), now)
    }

    /// When it ends, or ended, by its own times; `None` if nobody holds it or its times can't be read.
    /// Others may take it only at [`takeover`](Self::takeover).
    #[must_use]
    pub fn end(&self) -> Option<Instant> {
        self.holder.as_ref()?;
        let end = self.reduced(&mut Names::default()).end();
        end.filter(|&end| end != Instant::UNREADABLE)
    }

    /// How long it may take until the lock is reported to its holder: then, a third of its duration is left. `None`: it
    /// does not expire.
    #[must_use]
    pub fn report_limit(&self, now: Now) -> Option<Duration> {
        let end = self.end().filter(|_| !self.admin)?;
        Some(report_limit(end, self.duration, now).to_duration())
    }

    /// Whether a holder that renews it at a third of its duration, as [`HeldLease`](crate::HeldLease) does by default,
    /// seems to do so still: more than half of it is left. `false` if it does not expire.
    #[must_use]
    pub fn seems_renewed(&self, now: Now) -> bool {
        let half = Span::micros(Span::seconds(self.duration).as_micros() / 2);
        let left = self.state(now).left(now);
        left.is_some_and(|left| left > half)
    }

    /// When it ends or has ended, for people: for a hold, the planned end. `None` if there is no end, or
    /// nobody knows it; [`Instant::UNREADABLE`] if its time can't be read.
    #[must_use]
    pub fn expected_end(&self, now: Now) -> Option<Instant> {
        match self.state(now) {
            State::AdminHold => self.hold_until().map(Instant::from),
            state => state.end(),
        }
    }

    /// Whether somebody holds it past its end: it has expired, or its hold is overdue.
    #[must_use]
    pub fn is_overdue(&self, now: Now) -> bool {
        matches!(self.state(now), State::Expired { .. }) || self.overdue_for(now).is_some()
    }

    /// How long ago its [expected end](Self::expected_end) was, if it is [overdue](Self::is_overdue). `None` also if
    /// that time is not known.
    #[must_use]
    pub fn overdue_for(&self, now: Now) -> Option<Span> {
        match self.state(now) {
            State::AdminHold => {
                let ago = now.earliest - Instant::from(self.hold_until()?);
                Some(ago).filter(|&ago| ago > Span::ZERO)
            }
            state => state.expired_for(now),
        }
    }

    /// How much is left until its [expected end](Self::expected_end): [`State::left`], or for a hold the time until
    /// its planned end, negative once that is overdue.
    #[must_use]
    pub fn time_left(&self, now: Now) -> Option<Span> {
        match self.state(now) {
            State::AdminHold => Some(Instant::from(self.hold_until()?) - now.earliest),
            state => state.left(now),
        }
    }

    /// Whether its holder is an administrator's hold.
    #[must_use]
    pub fn is_hold(&self) -> bool {
        self.admin
    }

    /// Whether `identity` holds it, as a lease or as an administrator's hold.
    #[must_use]
    pub fn is_held_by(&self, identity: &str) -> bool {
        self.holder().is_some_and(|holder| {
            holder == identity || (self.admin && holder == hold_identity(identity))
        })
    }

    /// The first instant at which others may take it, if it is not renewed; `None` if it does not expire.
    #[must_use]
    pub fn takeover(&self) -> Option<Instant> {
        takeover(&self.reduced(&mut Names::default()))
    }

    /// When this acquisition ended, if `next` began only after that: then it expired, and was not taken over.
    #[must_use]
    pub fn ended_before(&self, next: &Self) -> Option<Instant> {
        let began = next.acquired?;
        self.end().filter(|&end| began > end)
    }

    /// What is unusual about it at `now`.
    #[must_use]
    pub fn flags(&self, now: Now) -> Flags {
        flags(&self.reduced(&mut Names::default()), now)
    }

    /// The first instant after the present at which its state or its oddities change because of time
    /// alone, or a hold becomes overdue; `None`: never. Uses the earliest clock.
    #[must_use]
    pub fn next_change(&self, now: Now) -> Option<Instant> {
        let lease = self.reduced(&mut Names::default());
        match state(Some(&lease), now) {
            State::AdminHold => self
                .hold_until()
                .map(|until| Instant::from(until) + Span::TICK)
                .filter(|&at| at > now.earliest),
            _ => next_change(&lease, now),
        }
    }

    /// The node that it is for: the Lease's name.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// `metadata.uid`.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// `metadata.resourceVersion`.
    #[must_use]
    pub fn resource_version(&self) -> u64 {
        self.version.0
    }

    /// The uid of the Node that owns it; `None` if none does.
    #[must_use]
    pub fn node_uid(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Owner {
            kind: String,
            name: String,
            uid: String,
        }
        let owners: Vec<Owner> = serde_json::from_str(self.owners.as_ref()?.get()).ok()?;
        owners
            .into_iter()
            .find(|owner| owner.kind == "Node" && owner.name == self.node)
            .map(|owner| owner.uid)
    }

    /// Who holds it, as written; `None`: nobody.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        self.holder.as_deref()
    }

    /// The Lease was deleted, but something such as a finalizer keeps it: nobody can acquire the node
    /// until it is gone.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.deleting
    }

    /// When this acquisition began; `None` also if the time can't be read.
    #[must_use]
    pub fn acquired(&self) -> Option<DateTime<Utc>> {
        self.acquired.and_then(Instant::to_chrono)
    }

    /// The last acquisition or renewal; `None` also if the time can't be read.
    #[must_use]
    pub fn renewed(&self) -> Option<DateTime<Utc>> {
        self.renewed.and_then(Instant::to_chrono)
    }

    /// The duration in seconds; 0 if the Lease has none.
    #[must_use]
    pub fn duration_seconds(&self) -> u32 {
        self.duration
    }

    /// The number of acquisitions.
    #[must_use]
    pub fn transitions(&self) -> u32 {
        self.transitions
    }

    /// The reason, in the holder's words. Anybody can write it: escape it before you show it. `None` also
    /// if another tool took the lock over and left the reason of the previous holder.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.notes.reason.as_deref()
    }

    /// The ticket that says more, in the holder's words. `None` as for [`reason`](Self::reason).
    #[must_use]
    pub fn ticket(&self) -> Option<&str> {
        self.notes.ticket.as_deref()
    }

    /// The API user who acquired it; `None` if the client did not write that. Only the lease policy checks that it
    /// is true. Escape it before you show it.
    #[must_use]
    pub fn api_user(&self) -> Option<&str> {
        self.notes.user.as_deref()
    }

    /// What the lock asks of its Node: words that are separated by commas; `None`: nothing.
    #[must_use]
    pub fn keys(&self) -> Option<&str> {
        self.notes.keys.as_deref()
    }

    /// The purpose, for a program that has to recognize the lock later.
    #[must_use]
    pub fn purpose(&self) -> Option<&str> {
        self.notes.purpose.as_deref()
    }

    /// A [`LeaderElection`](crate::LeaderElection) was the last to use it, and no lock was acquired
    /// since. Elections with client-go do not leave this note.
    #[must_use]
    pub fn is_of_election(&self) -> bool {
        self.notes.are_of_election()
    }

    /// The Lease says that its Node was fenced. This does not depend on the current holder. Read the Node
    /// for more.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        self.notes.fenced.is_some()
    }

    /// The planned end of an administrator's hold. It is advisory: the hold does not end by itself.
    #[must_use]
    pub fn hold_until(&self) -> Option<DateTime<Utc>> {
        let text = self.notes.hold_until.as_deref()?;
        Some(DateTime::parse_from_rfc3339(text).ok()?.to_utc())
    }

    /// Who held it before it was released.
    #[must_use]
    pub fn last_holder(&self) -> Option<&str> {
        self.notes.last_holder.as_deref()
    }

    /// When it was released.
    #[must_use]
    pub fn released_at(&self) -> Option<DateTime<Utc>> {
        let text = self.notes.released_at.as_deref()?;
        Some(DateTime::parse_from_rfc3339(text).ok()?.to_utc())
    }

    /// Who released it, if that was not the holder: a take-over, or the end of somebody else's hold.
    /// `None` once the lease was acquired again.
    #[must_use]
    pub fn released_by(&self) -> Option<&str> {
        self.notes.released_by.as_deref()
    }

    /// The lock id of the current acquisition. `None` if nobody holds it, or if a client that writes no
    /// nonce acquired it, even if an earlier client's nonce is still there.
    #[must_use]
    pub fn lock_id(&self) -> Option<LockId> {
        self.holder.as_ref()?;
        LockId::new(&self.uid, self.transitions, self.notes.nonce.as_deref()?)
    }
}

/// Whether a Lease with `labels` carries all that are `wanted`.
fn carries(labels: Option<&RawValue>, wanted: &BTreeMap<String, String>) -> bool {
    if wanted.is_empty() {
        return true;
    }
    let labels: BTreeMap<Cow<'_, str>, Cow<'_, str>> = labels
        .and_then(|labels| serde_json::from_str(labels.get()).ok())
        .unwrap_or_default();
    wanted
        .iter()
        .all(|(key, value)| labels.get(key.as_str()).is_some_and(|is| is == value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &[u8]) -> Result<NodeLease, String> {
        NodeLease::from_json(json, &Repository::default())
    }

    #[test]
    fn a_lease_with_a_name_and_nothing_else_is_read() {
        let lease =
            read(br#"{"metadata":{"name":"n","uid":"u","resourceVersion":"5"}}"#).expect("a Lease");
        assert_eq!(lease.holder(), None);
        assert_eq!(lease.resource_version(), 5);
        assert_eq!(lease.lock_id(), None);
    }

    #[test]
    fn keys_of_other_tools_do_not_matter() {
        let lease = read(
            br#"{"metadata":{"name":"n","uid":"u-1","resourceVersion":"5","labels":{"a":"b"},
                "annotations":{"other":"x","kubectl-maint.dev/acquisition":"3-n1",
                "kubectl-maint.dev/reason":"new\nkernel"}},
                "spec":{"holderIdentity":"alice","renewTime":"9999-12-31T23:59:59.000000Z",
                "leaseTransitions":3,"new":{}}}"#,
        )
        .expect("a Lease");
        assert_eq!(lease.holder(), Some("alice"));
        assert_eq!(lease.reason(), Some("new\nkernel"));
        assert_eq!(lease.renewed, Some(Instant::UNREADABLE));
        assert_eq!(lease.renewed(), None);
        assert_eq!(
            lease
                .lock_id()
                .map(|lock_id| lock_id.to_string())
                .as_deref(),
            Some("u-1.3.n1")
        );
    }

    #[test]
    fn a_lock_and_a_hold_are_their_holders() {
        let held_by = |holder: &str, repository: &Repository| {
            let json = format!(
                r#"{{"metadata":{{"name":"n","resourceVersion":"5"}},
                "spec":{{"holderIdentity":"{holder}"}}}}"#
            );
            NodeLease::from_json(json.as_bytes(), repository)
                .expect("a Lease")
                .is_held_by("alice")
        };
        let nodes = Repository::node_maintenance();
        assert!(held_by("alice", &nodes));
        assert!(held_by("kubeadm:alice", &nodes));
        assert!(!held_by("", &nodes));
        assert!(!held_by("kubeadm:bob", &nodes));
        assert!(!held_by("alice2", &nodes));
        // Elsewhere there are no holds.
        assert!(!held_by("kubeadm:alice", &Repository::new("apps")));
    }

    #[test]
    fn a_lock_is_overdue_once_it_has_expired_and_a_hold_after_its_planned_end() {
        let at = |seconds: i64| Now::at(Instant::from_micros(seconds * 1_000_000));
        let minute = Some(Instant::from_micros(60_000_000));
        let lock = read(
            br#"{"metadata":{"name":"n","resourceVersion":"5"},"spec":{"holderIdentity":"alice",
                "renewTime":"1970-01-01T00:00:30.000000Z","leaseDurationSeconds":30}}"#,
        )
        .expect("a Lease");
        assert!(!lock.is_overdue(at(63)), "nobody else may take it yet");
        assert!(lock.is_overdue(at(64)));
        assert_eq!(lock.overdue_for(at(63)), None);
        assert_eq!(lock.overdue_for(at(64)), Some(Span::seconds(4)));
        assert_eq!(lock.time_left(at(40)), Some(Span::seconds(20)));
        assert!(lock.seems_renewed(at(44)));
        assert!(!lock.seems_renewed(at(45)));
        assert_eq!(lock.time_left(at(64)), None);
        assert_eq!(lock.expected_end(at(0)), minute);
        assert_eq!(lock.expected_end(at(64)), minute);
        let hold = |annotations: &str| {
            let json = format!(
                r#"{{"metadata":{{"name":"n","resourceVersion":"5","annotations":{{{annotations}}}}},
                "spec":{{"holderIdentity":"kubeadm:alice","leaseDurationSeconds":1}}}}"#
            );
            read(json.as_bytes()).expect("a Lease")
        };
        let planned = hold(r#""kubectl-maint.dev/hold-until":"1970-01-01T00:01:00Z""#);
        assert!(!planned.is_overdue(at(60)));
        assert!(planned.is_overdue(at(61)));
        assert_eq!(planned.overdue_for(at(60)), None);
        assert_eq!(planned.overdue_for(at(61)), Some(Span::seconds(1)));
        assert_eq!(planned.time_left(at(20)), Some(Span::seconds(40)));
        assert_eq!(planned.expected_end(at(61)), minute);
        assert!(!hold("").is_overdue(at(1_000_000)));
        assert_eq!(hold("").expected_end(at(61)), None);
        let free = read(br#"{"metadata":{"name":"n","resourceVersion":"5"}}"#).expect("a Lease");
        assert!(!free.is_overdue(at(61)));
        assert_eq!(free.expected_end(at(61)), None);
    }

    #[test]
    fn an_empty_holder_is_nobody() {
        let lease = read(
            br#"{"metadata":{"name":"n","resourceVersion":"5"},"spec":{"holderIdentity":""}}"#,
        )
        .expect("a Lease");
        assert_eq!(lease.holder(), None);
    }

    #[test]
    fn a_hold_changes_by_itself_the_instant_it_is_overdue() {
        let lease = read(
            br#"{"metadata":{"name":"n","resourceVersion":"5","annotations":
                {"kubectl-maint.dev/hold-until":"1970-01-01T00:01:00Z"}},
                "spec":{"holderIdentity":"kubeadm:alice"}}"#,
        )
        .expect("a Lease");
        let minute = Instant::from_micros(60_000_000);
        let overdue = minute + Span::TICK;
        assert_eq!(lease.next_change(Now::at(minute)), Some(overdue));
        assert_eq!(lease.next_change(Now::at(overdue)), None);
    }

    #[test]
    fn leases_without_a_label_of_the_repository_are_foreign() {
        let repository = Repository::new("apps")
            .label("app", "db")
            .label("tier", "a");
        let is_foreign = |labels: &str| {
            let json = format!(r#"{{"metadata":{{"name":"n","resourceVersion":"5"{labels}}}}}"#);
            NodeLease::from_json(json.as_bytes(), &repository)
                .expect("a Lease")
                .foreign
        };
        assert!(!is_foreign(
            r#","labels":{"app":"db","tier":"a","other":"x"}"#
        ));
        assert!(is_foreign(r#","labels":{"app":"db"}"#));
        assert!(is_foreign(r#","labels":{"app":"db","tier":"b"}"#));
        assert!(is_foreign(r#","labels":null"#));
        assert!(is_foreign(""));
    }

    #[test]
    fn administrators_are_those_of_nodes() {
        let held = br#"{"metadata":{"name":"n","resourceVersion":"5"},
            "spec":{"holderIdentity":"kubeadm-0"}}"#;
        let is_admin = |repository| {
            let lease = NodeLease::from_json(held, &repository).expect("a Lease");
            let lease = lease.reduced(&mut Names::default());
            lease.holder.expect("a holder").admin
        };
        assert!(is_admin(Repository::node_maintenance()));
        assert!(!is_admin(Repository::new("apps")));
    }
}
