//! Follows Leases: their current state and every change, even if they can't be watched.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use futures::future::{BoxFuture, OptionFuture};
use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};

use crate::cluster::api::Api;
use crate::cluster::watch::{Request, Step, WatchEvent};
use crate::env::jitter;
use crate::lease::NodeLease;
use crate::maintenance::Maintenance;
use crate::outcome::Error;
use crate::protocol::BootInstant;

/// How often Leases that can't be watched are read. With up to a quarter added at random, and the pauses
/// between attempts to watch, that is about 10 s.
const BLIND: Duration = Duration::from_secs(8);

/// A watch that is retried after a failure waits as long as after this many failures: about a second.
const FAILURES: u32 = 7;

/// How many Leases are read at once, if they can't be listed.
const PARALLEL: usize = 16;

/// What a [`Follower`] reports.
#[derive(Debug)]
#[non_exhaustive]
pub enum Followed {
    /// The state of some Leases now, by node; `None`: it does not exist. The first report has every Lease
    /// that is followed, later ones have those that changed.
    Changed(BTreeMap<String, Option<NodeLease>>),
    /// The Leases can't be watched: the server is down, or a permission is missing. This is reported
    /// once, until they can be watched again. Until then they are read about every 10 s, if possible.
    Unwatched(Error),
    /// The Leases can be watched again.
    Watched,
}

/// Follows the Leases of some nodes, or all Leases, with one watch.
///
/// A watch that was cut or has expired continues where it was, after another list if needed. So the last
/// state of each Lease is always reported. A Lease never goes back to an earlier resource version, unless
/// the server shows that twice, because its store was restored from a backup.
///
/// # Usage
/// ```
/// use maintenance_lease::{Acquire, Followed, Maintenance};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let sandbox = sandbox::Sandbox::new();
/// # sandbox.add_node("worker-1");
/// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
/// let mut follower = maintenance.follow(["worker-1"]);
/// # let mut acquired = false;
/// loop {
///     match follower.next().await? {
///         Followed::Changed(leases) => {
///             for (node, lease) in leases {
///                 let holder = lease.as_ref().and_then(|lease| lease.holder());
///                 println!("{node}: {}", holder.unwrap_or("free"));
///             }
///         }
///         Followed::Unwatched(error) => println!("reading every 10 s: {error}"),
///         Followed::Watched => println!("watching again"),
///         _ => {}
///     }
/// #   if std::mem::replace(&mut acquired, true) { break }
/// #   maintenance.try_acquire("worker-1", &Acquire::new()).await?;
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Caveats
/// A report was true at some time in the past. Act on it only with a write on its resource version.
///
/// Nothing is sent before [`next`](Self::next) is polled, and dropping the follower ends the watch.
pub struct Follower {
    api: Api,
    /// `None`: all.
    nodes: Option<BTreeSet<String>>,
    /// The resource version of each Lease that was reported.
    told: HashMap<String, u64>,
    /// The state of every Lease was reported once.
    is_complete: bool,
    watch: BoxStream<'static, Step<NodeLease>>,
    /// The last list had an earlier version of a Lease than was reported.
    went_back: bool,
    /// Reads the Leases one by one, if they can't be listed.
    reading: Option<BoxFuture<'static, Result<HashMap<String, NodeLease>, Error>>>,
    is_blind: bool,
    /// If the Leases can't be watched: when they are read next. `None`: a list is under way.
    look_at: Option<BootInstant>,
}

impl Maintenance {
    /// Follows the Leases of `nodes`. If there are several, it watches all Leases.
    ///
    /// # Usage
    /// See [`Follower`].
    pub fn follow<N: Into<String>>(&self, nodes: impl IntoIterator<Item = N>) -> Follower {
        let nodes = nodes.into_iter().map(Into::into).collect();
        Follower::new(&self.api, Some(nodes))
    }

    /// Follows all Leases.
    ///
    /// # Usage
    /// See [`Follower`].
    pub fn follow_all(&self) -> Follower {
        Follower::new(&self.api, None)
    }
}

impl Follower {
    fn new(api: &Api, nodes: Option<BTreeSet<String>>) -> Self {
        let mut follower = Self {
            api: api.once(),
            nodes,
            told: HashMap::new(),
            is_complete: false,
            went_back: false,
            watch: stream::pending().boxed(),
            reading: None,
            is_blind: false,
            look_at: None,
        };
        follower.watch(None);
        follower
    }

    /// Treats these Leases as reported, because they were just read, and all others as missing. Changes
    /// since then are reported.
    #[must_use]
    pub fn after<'a>(mut self, leases: impl IntoIterator<Item = &'a NodeLease>) -> Self {
        self.resume_after(leases);
        self
    }

    /// The same, for a follower that has already started.
    pub(crate) fn resume_after<'a>(&mut self, leases: impl IntoIterator<Item = &'a NodeLease>) {
        let leases = leases.into_iter();
        self.told = leases
            .map(|lease| (lease.node.clone(), lease.version.0))
            .collect();
        self.is_complete = true;
        self.watch(self.one().and_then(|node| self.told.get(node).copied()));
    }

    /// The next report.
    ///
    /// # Errors
    /// If the Leases can't be read for a reason that needs action, such as a missing permission. You can
    /// call it again later; it then retries.
    ///
    /// # Caveats
    /// This future may be dropped at any time. The next call returns what this one would have returned.
    pub async fn next(&mut self) -> Result<Followed, Error> {
        loop {
            let env = &self.api.env;
            let look = self.look_at.map(|at| {
                let left = at.since(env.boot()).to_duration();
                env.sleep(left)
            });
            let change = tokio::select! {
                biased;
                Some(read) = OptionFuture::from(self.reading.as_mut()) => {
                    self.reading = None;
                    self.read(read)?
                }
                Some(step) = self.watch.next() => self.watched(step)?,
                Some(()) = OptionFuture::from(look) => {
                    self.watch(None);
                    None
                }
            };
            if let Some(change) = change {
                return Ok(change);
            }
        }
    }

    /// The node, if there is only one.
    fn one(&self) -> Option<&String> {
        let nodes = self.nodes.as_ref()?;
        nodes.first().filter(|_| nodes.len() == 1)
    }

    /// Starts a watch at the version `from`, or with a list.
    fn watch(&mut self, from: Option<u64>) {
        let failures = if self.is_blind { FAILURES } else { 0 };
        let one = self.one().map(String::as_str);
        self.watch = self.api.lease_steps(one, from, failures);
        self.look_at = None;
        self.reading = None;
    }

    fn watched(&mut self, step: Step<NodeLease>) -> Result<Option<Followed>, Error> {
        match step {
            Step::Told(WatchEvent::Listed(leases)) => Ok(self.listed(leases)),
            Step::Told(WatchEvent::Changed(lease)) => {
                Ok(self.changed(lease.node.clone(), Some(lease)))
            }
            Step::Told(WatchEvent::Deleted(last)) => Ok(self.changed(last.node, None)),
            Step::Opened => {
                self.look_at = None;
                Ok(std::mem::take(&mut self.is_blind).then_some(Followed::Watched))
            }
            Step::Failed(Request::List, error) if !may_pass(&error) => match &self.nodes {
                Some(nodes) => {
                    self.reading = Some(read(self.api.clone(), nodes.clone()).boxed());
                    self.watch = stream::pending().boxed();
                    Ok(self.unwatched(error))
                }
                None => Err(error),
            },
            // The watch retries the list.
            Step::Failed(Request::List, error) => Ok(self.unwatched(error)),
            Step::Failed(Request::Watch, error) => {
                self.schedule_read();
                if !may_pass(&error) {
                    self.watch = stream::pending().boxed();
                }
                Ok(self.unwatched(error))
            }
        }
    }

    fn unwatched(&mut self, error: Error) -> Option<Followed> {
        let was_blind = std::mem::replace(&mut self.is_blind, true);
        (!was_blind).then_some(Followed::Unwatched(error))
    }

    fn schedule_read(&mut self) {
        if self.look_at.is_none() {
            let env = &self.api.env;
            let pause = BLIND + jitter(&**env, BLIND / 4);
            self.look_at = Some(env.boot().plus(pause.into()));
        }
    }

    /// Takes in the results of reading each node's Lease.
    fn read(
        &mut self,
        read: Result<HashMap<String, NodeLease>, Error>,
    ) -> Result<Option<Followed>, Error> {
        self.schedule_read();
        match read {
            Ok(leases) => {
                let from = self.one().and_then(|one| leases.get(one));
                if let Some(from) = from.map(NodeLease::resource_version) {
                    self.watch(Some(from));
                    self.schedule_read();
                }
                Ok(self.listed(leases))
            }
            Err(error) if may_pass(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes in a complete list.
    fn listed(&mut self, mut leases: HashMap<String, NodeLease>) -> Option<Followed> {
        if let Some(nodes) = &self.nodes {
            leases.retain(|node, _| nodes.contains(node));
        }
        let went_back = leases.iter().any(|(node, lease)| {
            let told = self.told.get(node);
            told.is_some_and(|&told| lease.version.0 < told)
        });
        // A single occurrence may be an old answer.
        if went_back && !std::mem::replace(&mut self.went_back, true) {
            self.watch(None);
            return None;
        }
        self.went_back = false;
        let named = self.nodes.iter().flatten().filter(|_| !self.is_complete);
        let mut changed: BTreeMap<_, _> = named
            .chain(self.told.keys())
            .filter(|node| !leases.contains_key(*node))
            .map(|node| (node.clone(), None))
            .collect();
        self.told.retain(|node, _| leases.contains_key(node));
        for (node, lease) in leases {
            let version = lease.version.0;
            if self.told.insert(node.clone(), version) != Some(version) {
                changed.insert(node, Some(lease));
            }
        }
        let is_first = !std::mem::replace(&mut self.is_complete, true);
        (is_first || !changed.is_empty()).then_some(Followed::Changed(changed))
    }

    fn changed(&mut self, node: String, lease: Option<NodeLease>) -> Option<Followed> {
        if self
            .nodes
            .as_ref()
            .is_some_and(|nodes| !nodes.contains(&node))
        {
            return None;
        }
        match &lease {
            Some(lease) => self.told.insert(node.clone(), lease.version.0),
            None => self.told.remove(&node),
        };
        Some(Followed::Changed(BTreeMap::from([(node, lease)])))
    }
}

/// Reads the Lease of each node.
async fn read(api: Api, nodes: BTreeSet<String>) -> Result<HashMap<String, NodeLease>, Error> {
    stream::iter(nodes)
        .map(|node| {
            let api = &api;
            async move {
                let lease = api.lease(&node).await;
                lease.map_err(|error| api.lease_right("get").explain(error))
            }
        })
        .buffer_unordered(PARALLEL)
        .try_filter_map(async |lease| Ok(lease.map(|lease| (lease.node.clone(), lease))))
        .try_collect()
        .await
}

fn may_pass(error: &Error) -> bool {
    matches!(error, Error::Api(problem) if problem.may_pass())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;
    use http::{Request as HttpRequest, Response};
    use http_body_util::Full;
    use kube::Client;
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    fn lease(version: u64) -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": "n",
                "namespace": crate::NAMESPACE,
                "uid": "u",
                "resourceVersion": version.to_string(),
            },
            "spec": {"holderIdentity": "bob"},
        })
    }

    fn list(version: u64) -> String {
        let metadata = json!({"resourceVersion": version.to_string()});
        let items = [lease(version)];
        let version = "coordination.k8s.io/v1";
        json!({"apiVersion": version, "kind": "LeaseList", "metadata": metadata, "items": items})
            .to_string()
    }

    fn event(kind: &str, object: &Value) -> String {
        format!("{}\n", json!({"type": kind, "object": object}))
    }

    /// Follows one Lease on a server that says this, one answer a request.
    fn follower(answers: impl IntoIterator<Item = String>) -> Follower {
        let answers: Vec<String> = answers.into_iter().collect();
        let answers = std::sync::Arc::new(std::sync::Mutex::new(answers.into_iter()));
        let service = tower::service_fn(move |_: HttpRequest<Body>| {
            let answer = answers.lock().expect("no panic").next();
            async {
                match answer {
                    Some(answer) => {
                        Ok::<_, Infallible>(Response::new(Full::from(Bytes::from(answer))))
                    }
                    None => std::future::pending().await,
                }
            }
        });
        let client = Client::new(service, "default");
        let maintenance = Maintenance::new(client, "alice").expect("an identity");
        maintenance.follow(["n"])
    }

    /// The version that it tells next.
    async fn version(follower: &mut Follower) -> Option<u64> {
        match follower.next().await {
            Ok(Followed::Changed(leases)) => leases["n"].as_ref().map(|lease| lease.version.0),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_late_event_takes_a_lease_back() {
        let late = event("MODIFIED", &lease(9)) + &event("DELETED", &lease(8));
        let mut follower = follower([list(10), late + &event("MODIFIED", &lease(11))]);
        assert_eq!(version(&mut follower).await, Some(10));
        assert_eq!(version(&mut follower).await, Some(11));
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_version_is_believed_once_it_was_listed_twice() {
        let too_old = event("ERROR", &json!({"kind": "Status", "code": 410}));
        let once = [list(10), too_old.clone(), list(5), list(12)];
        let mut stale = follower(once);
        assert_eq!(version(&mut stale).await, Some(10));
        assert_eq!(version(&mut stale).await, Some(12));

        let mut restored = follower([list(10), too_old, list(5), list(5)]);
        assert_eq!(version(&mut restored).await, Some(10));
        assert_eq!(version(&mut restored).await, Some(5));
    }
}
