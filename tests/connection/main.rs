//! How the plugin connects, flag by flag: to a real API server, and to servers and proxies that fail.

#![allow(missing_docs, reason = "tests are named for what they show")]

mod arguments;
mod configuration;
mod credentials;
mod impersonation;
#[path = "../support/namespace.rs"]
mod namespace;
mod proxies;
mod request_logs;
mod support;
mod timeouts;
mod truncated_responses;
mod trust;
mod unreachable;
