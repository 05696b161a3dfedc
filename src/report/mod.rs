//! Pure renderers of outcomes: lines, tables, JSON and YAML, refusals and events in words.

pub(crate) mod awaited;
pub(crate) mod change;
pub(crate) mod fencing;
pub(crate) mod grid;
pub(crate) mod health;
pub(crate) mod holder;
pub(crate) mod item;
pub(crate) mod leases;
pub(crate) mod loss;
pub(crate) mod marks;
pub(crate) mod near;
pub(crate) mod pods;
pub(crate) mod print;
pub(crate) mod refusal;
pub(crate) mod rights;
pub(crate) mod safety;
pub(crate) mod status;
pub(crate) mod time;
pub(crate) mod verb;
pub(crate) mod waiting;
pub(crate) mod with;
