//! An in-memory Kubernetes API server.
//!
//! It keeps Namespaces, Nodes, Leases, Events, Pods and other objects as kube-apiserver does, with
//! its resource versions, conflicts, validation, watches and tables, and answers a [`kube::Client`]
//! in the same process or, on a loopback port, any client that speaks plain HTTP.
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
//! What it leaves out: users and their rights, quotas, admission policies, server-side apply of anything but
//! Nodes and Machines of Cluster API, `managedFields` of objects that were not applied, request bodies that aren't JSON (answered 415; `kubectl create namespace` sends
//! protobuf, `kubectl create -f` doesn't), and every controller but the two that delete (objects
//! after their owners, namespaces after their content): a cordon adds no taint.
//!
//! Time comes from [`Builder::clock`] where the server writes it, and from tokio where it waits, so
//! that simulations with paused time work. With [`Builder::seed`] nothing in it is random.

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
