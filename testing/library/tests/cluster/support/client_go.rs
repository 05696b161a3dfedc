//! A process that takes part in a leader election as client-go does, which Kubernetes' own components use.

use chrono::{DateTime, TimeDelta};
use http::StatusCode;
use maintenance_lease::protocol::{BootInstant, Span};
use serde_json::{Value, json};

use super::clocks::micros;
use super::cluster::Cluster;

/// The fields of a Lease that client-go compares. Its times are in whole seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    holder: String,
    duration: u64,
    transitions: u64,
    acquired: String,
    renewed: String,
}

/// The process. It keeps the Lease as it last read or wrote it, and replaces the whole object.
pub(crate) struct ClientGo {
    cluster: Cluster,
    leases: String,
    name: String,
    identity: String,
    duration: u32,
    /// How far its wall clock is ahead.
    ahead: TimeDelta,
    lease: Value,
    observed: Option<(Record, BootInstant)>,
}

impl ClientGo {
    /// A candidate for the Lease `name` in the collection `leases`, with leases of `duration` seconds.
    pub(crate) fn new(
        cluster: &Cluster,
        leases: &str,
        name: &str,
        identity: &str,
        duration: u32,
    ) -> Self {
        Self {
            cluster: cluster.clone(),
            leases: leases.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            duration,
            ahead: TimeDelta::zero(),
            lease: Value::Null,
            observed: None,
        }
    }

    pub(crate) fn with_its_clock_ahead(mut self, ahead: TimeDelta) -> Self {
        self.ahead = ahead;
        self
    }

    /// One iteration of its loop, which it runs every few seconds: it tries to become or stay the leader. Returns
    /// whether it is the leader.
    pub(crate) async fn turn(&mut self) -> bool {
        let looked = self.cluster.env.boot();
        // While it believes that it is the leader, it does not read the Lease first.
        if self.leads() && self.is_valid(looked) && self.renew().await {
            return true;
        }
        let (code, lease) = self.cluster.request("GET", &self.path(), None).await;
        if code == StatusCode::NOT_FOUND {
            return self.create().await;
        }
        assert!(code.is_success(), "{code}: {lease}");
        self.lease = lease;
        let record = self.record();
        if self.observed.as_ref().map(|(seen, _)| seen) != Some(&record) {
            self.observe(record);
        }
        let held = !self.record().holder.is_empty();
        if held && self.is_valid(looked) && !self.leads() {
            return false;
        }
        self.renew().await
    }

    /// Releases the Lease, as the process does on SIGTERM.
    pub(crate) async fn release(&mut self) {
        assert!(self.leads(), "it leads");
        let (code, lease) = self.cluster.request("GET", &self.path(), None).await;
        assert!(code.is_success(), "{code}: {lease}");
        self.lease = lease;
        let now = self.wall();
        let transitions = self.lease["spec"]["leaseTransitions"].clone();
        let released = self.update(json!({
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }));
        assert!(released.await, "nobody else wrote");
    }

    fn leads(&self) -> bool {
        let observed = self.observed.as_ref();
        observed.is_some_and(|(record, _)| record.holder == self.identity)
    }

    /// Whether the record was first observed less than its own duration ago.
    fn is_valid(&self, now: BootInstant) -> bool {
        self.observed.as_ref().is_some_and(|(record, at)| {
            let duration = u32::try_from(record.duration).expect("a duration of the server's");
            at.plus(Span::seconds(duration)) > now
        })
    }

    async fn create(&mut self) -> bool {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.name},
            "spec": self.own_spec(&json!(self.wall()), 0),
        });
        let made = self
            .cluster
            .request("POST", &self.leases, Some(&lease))
            .await;
        self.wrote(made)
    }

    /// Writes its own record over the Lease that it last saw.
    async fn renew(&mut self) -> bool {
        let spec = &self.lease["spec"];
        let transitions = spec["leaseTransitions"].as_u64().unwrap_or(0);
        let spec = if self.leads() {
            self.own_spec(&spec["acquireTime"], transitions)
        } else {
            self.own_spec(&json!(self.wall()), transitions + 1)
        };
        self.update(spec).await
    }

    fn own_spec(&self, acquired: &Value, transitions: u64) -> Value {
        json!({
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self.duration,
            "acquireTime": acquired,
            "renewTime": self.wall(),
            "leaseTransitions": transitions,
        })
    }

    async fn update(&mut self, spec: Value) -> bool {
        let mut lease = self.lease.clone();
        lease["spec"] = spec;
        let path = self.path();
        let updated = self.cluster.request("PUT", &path, Some(&lease)).await;
        self.wrote(updated)
    }

    fn wrote(&mut self, (code, lease): (StatusCode, Value)) -> bool {
        if code == StatusCode::CONFLICT {
            return false;
        }
        assert!(code.is_success(), "{code}: {lease}");
        self.lease = lease;
        let record = self.record();
        self.observe(record);
        true
    }

    fn observe(&mut self, record: Record) {
        self.observed = Some((record, self.cluster.env.boot()));
    }

    fn record(&self) -> Record {
        let spec = &self.lease["spec"];
        let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
        let seconds = |field: &str| {
            let time = DateTime::parse_from_rfc3339(&text(field));
            time.map_or_else(|_| String::new(), |time| time.timestamp().to_string())
        };
        Record {
            holder: text("holderIdentity"),
            duration: spec["leaseDurationSeconds"].as_u64().unwrap_or(0),
            transitions: spec["leaseTransitions"].as_u64().unwrap_or(0),
            acquired: seconds("acquireTime"),
            renewed: seconds("renewTime"),
        }
    }

    fn wall(&self) -> String {
        micros(self.cluster.now() + self.ahead)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.leases, self.name)
    }
}
