//! Runs of the plugin, and the servers and proxies that it connects to.

pub(crate) mod kubeconfig;
pub(crate) mod maint;
pub(crate) mod proxy;
pub(crate) mod server;
#[path = "../../support/tls.rs"]
mod tls;
