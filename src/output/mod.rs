//! Outcomes as tables, JSON, YAML and names. Nothing here prints.

pub(crate) mod checkup;
pub(crate) mod data;
pub(crate) mod describe;
pub(crate) mod error_code;
pub(crate) mod fencing;
pub(crate) mod force_deletion;
pub(crate) mod format;
pub(crate) mod history;
pub(crate) mod item;
pub(crate) mod item_error;
pub(crate) mod leases;
mod other_tool;
mod outcome;
pub(crate) mod pods;
pub(crate) mod print;
pub(crate) mod safety;
pub(crate) mod schema;
pub(crate) mod status;
pub(crate) mod version;
pub(crate) mod why;
