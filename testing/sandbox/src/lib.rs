//! An in-memory Kubernetes API server.
//!
//! It handles Namespaces, Nodes, Leases, Events, Pods and other objects like kube-apiserver, with resource versions,
//! conflicts, validation, watches and tables. It serves a [`kube::Client`] in the same process or, on a loopback port,
//! any client that uses plain HTTP.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> kube::Result<()> {
//! use k8s_openapi::api::core::v1::Node;
//! use kube::Api;
//!
//! let sandbox = sandbox::Sandbox::new();
//! sandbox.add_node("worker-1");
//!
//! let nodes: Api<Node> = Api::all(sandbox.client());
//! assert_eq!(nodes.list(&Default::default()).await?.items.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! It does not have:
//!
//! - users and their rights, quotas, and admission policies;
//! - server-side apply, except for Nodes;
//! - `managedFields` of objects that were not applied;
//! - request bodies other than JSON (answered 415; `kubectl create namespace` sends protobuf, `kubectl create -f`
//!   doesn't);
//! - controllers, except the two that delete objects after their owners and namespaces after their content. A cordon
//!   adds no taint.
//!
//! The server writes times from [`Builder::clock`], and waits by tokio's time, so simulations with paused time work.
//! With [`Builder::seed`], nothing is random.

mod builder;
mod cause;
mod collector;
mod discovery;
mod failure;
mod identity;
mod managed;
mod object;
mod openapi;
mod query;
mod representation;
mod resource;
mod route;
mod rules;
mod sandbox;
mod seed;
mod selector;
mod server;
mod service;
mod serving;
mod store;
mod strategic;
mod table;
mod verbs;
mod versions;
mod watch;

pub use builder::Builder;
pub use resource::Resource;
pub use sandbox::Sandbox;
pub use seed::Node;
pub use service::{AnswerBody, SandboxService};
pub use serving::Serving;
