//! Clusters, and the plugin's runs against them.

mod cluster;
mod run;

pub(crate) use cluster::{Cluster, on_both, on_real};
pub(crate) use run::{Maint, Run};
