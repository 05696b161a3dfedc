//! A real Kubernetes control plane for tests and benchmarks: etcd, kube-apiserver and, by default,
//! kube-controller-manager. Each listens on free ports of the loopback interface.
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! use control_plane::{ControlPlane, NodeSpec, Rule};
//!
//! let control_plane = ControlPlane::start()?;
//! control_plane.create_nodes(&[NodeSpec::ready("node-1")])?;
//! let alice = control_plane.user("alice", &[])?;
//! control_plane.grant("alice", &[Rule::new("", &["nodes"], &["get"])])?;
//! println!("KUBECONFIG={}", alice.display());
//! # Ok(())
//! # }
//! ```
//!
//! The API is blocking, and may also be called from an async runtime. The process that owns a
//! [`ControlPlane`] may end for any reason, even by SIGKILL. Then a small janitor process kills
//! its children by process id and removes its files.
//!
//! The binaries come from the environment, or from the cache that `cargo xtask control-plane`
//! fills: see [`Assets`].

#![warn(missing_docs)]

mod api;
mod assets;
mod authority;
mod component;
mod csi_driver;
mod flags;
mod janitor;
mod kubeconfig;
mod kubelets;
mod logs;
mod nodes;
mod plane;
mod ports;
mod shared;
mod tokens;
mod users;

pub use assets::{
    Assets, Binary, KUBERNETES_VERSION, OLDEST_KUBERNETES_VERSION, cache_dir, target_dir,
};
pub use authority::{Authority, Identity};
pub use component::Component;
pub use csi_driver::CsiDriver;
pub use kubeconfig::Kubeconfig;
pub use kubelets::{Kubelets, Return};
pub use logs::LogGuard;
pub use nodes::{NodeSpec, Readiness};
pub use plane::{Builder, ControlPlane};
pub use shared::{WITHOUT_KUBERNETES, is_left_out, shared};
pub use users::Rule;
