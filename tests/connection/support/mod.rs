//! What the tests run, and what they run it against.

mod client_auth;
pub(crate) mod kubeconfig;
pub(crate) mod maint;
pub(crate) mod proxy;
pub(crate) mod server;
#[path = "../../support/tls.rs"]
mod tls;
