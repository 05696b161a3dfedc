//! What the tests are made of.

pub(crate) mod database;
mod heart;
#[path = "../../support/inherited.rs"]
mod inherited;
#[allow(dead_code)]
#[path = "../../cli/support/run.rs"]
mod run;
mod stage;

pub(crate) use run::Run;
pub(crate) use stage::{SILENCE, Stage, eventually};
