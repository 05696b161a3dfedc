//! What the tests are made of.

#[allow(dead_code)]
#[path = "../../cli/support/cluster.rs"]
mod cluster;
pub(crate) mod database;
#[allow(dead_code)]
#[path = "../../cli/support/gate.rs"]
mod gate;
mod heartbeat;
mod hook;
#[path = "../../support/inherited.rs"]
mod inherited;
#[allow(dead_code)]
#[path = "../../cli/support/run.rs"]
mod run;
#[path = "../../support/schema.rs"]
mod schema;
mod stage;

pub(crate) use gate::{Gate, Kept, Treatment};
pub(crate) use hook::PatientHook;
pub(crate) use run::{Run, Running};
pub(crate) use stage::{Plane, SILENCE, Stage, eventually};
