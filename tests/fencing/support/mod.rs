//! What the tests are made of.

#[allow(dead_code)]
#[path = "../../cli/support/cluster.rs"]
mod cluster;
pub(crate) mod database;
#[allow(dead_code)]
#[path = "../../cli/support/gate.rs"]
mod gate;
mod heart;
#[path = "../../support/inherited.rs"]
mod inherited;
#[allow(dead_code)]
#[path = "../../cli/support/run.rs"]
mod run;
mod stage;

pub(crate) use gate::Treatment;
pub(crate) use run::Run;
pub(crate) use stage::{SILENCE, Stage, eventually};
