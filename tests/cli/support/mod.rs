//! Clusters, and runs of the plugin against them.

mod cluster;
#[path = "../../support/inherited.rs"]
mod inherited;
mod plugin;
mod proxy;
mod queries;
mod run;
#[path = "../../support/schema.rs"]
pub(crate) mod schema;
mod terminal;
#[path = "../../support/tls.rs"]
mod tls;

pub(crate) use cluster::{Cluster, LEASES, ago, in_memory, on_both, on_one, on_real};
pub(crate) use plugin::Plugin;
pub(crate) use proxy::{Kept, Proxy, Treatment};
pub(crate) use queries::{events_of, holder_of, lists_of_whole_nodes, requests};
pub(crate) use run::{Maint, Run, Running, unless_stalled};
pub(crate) use terminal::{as_text, at_a_terminal, in_one_line};
