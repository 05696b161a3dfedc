//! The options of a sandbox.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::collector::Collector;
use crate::identity::Identities;
use crate::resource::{Catalog, Resource};
use crate::sandbox::Sandbox;
use crate::seed;
use crate::server::{Clock, Server};
use crate::store::Store;

/// The namespaces of every new cluster.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Builds a [`Sandbox`].
#[must_use]
pub struct Builder {
    clock: Clock,
    seed: Option<u64>,
    collection_delay: Option<Duration>,
    history: usize,
    resources: Vec<Resource>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            clock: Arc::new(Utc::now),
            seed: None,
            collection_delay: Some(Duration::from_millis(100)),
            history: 10_000,
            resources: Vec::new(),
        }
    }
}

impl Sandbox {
    /// Options for a cluster with its own clock, seed or types.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Builder {
    /// The source of `Date` headers and creation times. The default is the system's clock.
    pub fn clock(mut self, clock: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Makes uids and generated names repeatable.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Whether objects are deleted after their owners, and namespaces after their content, as with
    /// a running kube-controller-manager. The default is that they are, 100 ms later.
    pub fn garbage_collection(mut self, on: bool) -> Self {
        self.collection_delay = on.then_some(Duration::from_millis(100));
        self
    }

    /// How long after its owner an object is deleted. Switches garbage collection on.
    pub fn collection_delay(mut self, delay: Duration) -> Self {
        self.collection_delay = Some(delay);
        self
    }

    /// How many changes are kept as starting points for watches and pages. The default is 10,000. A
    /// request for an older one fails with 410 Expired.
    pub fn history(mut self, changes: usize) -> Self {
        self.history = changes;
        self
    }

    /// Adds a custom type.
    pub fn resource(mut self, resource: Resource) -> Self {
        self.resources.push(resource);
        self
    }

    /// Builds the sandbox, with the namespaces that every new cluster has.
    pub fn build(self) -> Sandbox {
        let identities = self
            .seed
            .map_or_else(Identities::random, Identities::seeded);
        let sandbox = Sandbox::over(Server::new(
            Catalog::with(self.resources),
            self.collection_delay.map(|delay| Collector { delay }),
            self.clock,
            Store::new(self.history),
            identities,
        ));
        for name in NAMESPACES {
            sandbox.put(seed::namespace(name));
        }
        sandbox
    }
}
