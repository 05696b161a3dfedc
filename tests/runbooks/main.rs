//! The runbooks of `docs/runbooks`, as an operator runs them: with kubectl, on a real kube-apiserver, and with
//! stand-ins for the programs that connect to a machine. Each one runs to its end, and once with a step that is killed.
//! Also the commands in the README, docs/tasks.md and docs/scripts.md.

mod commands;
#[path = "../support/inherited.rs"]
mod inherited;
mod investigation;
#[path = "../support/namespace.rs"]
mod namespace;
mod nightly;
mod own_update;
mod reboot;
mod script;
mod style;
mod test_machine;
mod trim;
