//! How the plugin connects, flag by flag: against a real API server, and against servers and proxies that misbehave.

#![allow(missing_docs, reason = "tests are named for what they show")]

mod acting_as;
mod arguments;
mod configuration;
mod credentials;
mod cut_short;
mod limits;
mod observing;
mod proxies;
mod support;
mod trust;
mod unreachable;
