//! What Linux and macOS have in common: signals, and the job control of a command.

pub(crate) mod job_control;
pub(crate) mod signal_numbers;
pub(crate) mod signals;
pub(crate) mod tty;
