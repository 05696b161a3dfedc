//! States, failures, durations and times in words. Nothing here prints.

pub(crate) mod activity;
pub(crate) mod change;
pub(crate) mod confirmation;
pub(crate) mod deprecated;
pub(crate) mod doctor;
pub(crate) mod error_code;
pub(crate) mod event;
pub(crate) mod failure;
pub(crate) mod failure_group;
pub(crate) mod fencing;
pub(crate) mod fencing_marks;
pub(crate) mod health;
pub(crate) mod holder;
pub(crate) mod input;
pub(crate) mod leases;
pub(crate) mod lock;
pub(crate) mod loss;
pub(crate) mod next_command;
pub(crate) mod node_keys;
pub(crate) mod node_state;

pub(crate) mod policies;
pub(crate) mod program;
pub(crate) mod refusal;
pub(crate) mod request;
pub(crate) mod session;
pub(crate) mod state;
pub(crate) mod suggestions;
pub(crate) mod time;
pub(crate) mod value;
pub(crate) mod verb;
pub(crate) mod waiting;
pub(crate) mod why;
pub(crate) mod with;
