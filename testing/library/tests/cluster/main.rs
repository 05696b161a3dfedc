//! The library against an API server: each case in the sandbox and on a real kube-apiserver.

mod support;

mod elections;
mod example;
mod following;
mod foreign_answers;
mod keepers;
mod keeping;
mod lost_answers;
mod namespaces;
mod nodes;
mod one_acquisition;
mod other_tools;
mod pages;
mod pauses;
mod race;
mod repeated_conflicts;
mod repositories;
mod requests;
mod retries;
mod rights;
mod runtimes;
mod sendable;
mod server_time;
mod sets;
mod states;
mod verbs;
mod waiters;
mod waiting;

pub(crate) use support::on_both_servers;
