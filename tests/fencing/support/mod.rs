//! The cluster, hooks and heartbeats that the tests share.

#[allow(dead_code)]
#[path = "../../cli/support/cluster.rs"]
mod cluster;
pub(crate) mod database;
mod heartbeat;
mod hook;
#[path = "../../support/inherited.rs"]
mod inherited;
#[allow(dead_code)]
#[path = "../../cli/support/proxy.rs"]
mod proxy;
#[allow(dead_code)]
#[path = "../../cli/support/run.rs"]
mod run;
#[path = "../../support/schema.rs"]
mod schema;
mod stage;
#[path = "../../support/tls.rs"]
mod tls;

/// Part of the path of every write of the held label.
pub(crate) const LABELLING: &str = "fieldManager=kubectl-maint-node-keys";

pub(crate) use hook::{KILLS, PatientHook, hook_that_kills};
pub(crate) use proxy::{Kept, Proxy, Treatment};
pub(crate) use run::{Maint, Run, Running};
pub(crate) use stage::{HEARTBEAT_AGE, Plane, Stage, VOLUME_ATTACHMENTS, eventually};
