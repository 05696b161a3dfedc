//! Measures a program that only sends the requests of a command and ignores the answers. The rest of the command's time
//! is its own work.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use clap::ValueEnum as _;
use clap::builder::PossibleValue;
use control_plane::ControlPlane;
use futures::try_join;
use http::Request;
use kube::Client;
use maintenance_lease::Requests;
use serde_json::{Value, json};

use super::command_cost::{Cost, cost, median, optimized_xtask};
use super::quantiles::millis;
use super::raw_patches::{NAMESPACE, Write, acquired, client, patch_all};
use super::runtime::block_on;
use crate::output::result;

/// The requests of a command.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum Requested {
    /// A Node and its Lease at once, then a patch of the Lease
    Acquire,
    /// Heartbeats, locks and whole Nodes at once
    Lists,
    /// A list of Leases, then a patch of each that acquires it
    AcquireMany,
    /// A list of Leases, then a patch of each that releases it
    ReleaseMany,
}

/// The node whose Lease is patched.
pub(super) const NODE: &str = "bench-one";

/// Prints the median cost of `rounds` runs, as a ratio to kubectl.
pub(super) fn compare(
    plane: &ControlPlane,
    requested: Requested,
    rounds: u16,
    kubectl: Cost,
) -> Result<()> {
    let run = |round: u16| {
        let mut command = command(plane, requested);
        cost(command.args(["--transitions", &round.to_string()]))
    };
    let bare: Vec<Cost> = (2..rounds + 2).map(run).collect::<Result<_>>()?;
    let wall = median(&bare).wall;
    result(format_args!(
        "  a program that only sends its requests: wall {:.3} ({})",
        wall.as_secs_f64() / kubectl.wall.as_secs_f64(),
        millis(wall),
    ));
    Ok(())
}

/// The program that sends the requests of `requested`.
pub(super) fn command(plane: &ControlPlane, requested: Requested) -> Command {
    let requested = requested.to_possible_value();
    let name = requested.as_ref().map(PossibleValue::get_name);
    let mut command = Command::new(optimized_xtask());
    command
        .arg("bare-requests")
        .args(name)
        .arg("--kubeconfig")
        .arg(plane.admin_kubeconfig())
        .env_clear();
    command
}

/// Send the requests of a command
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    requested: Requested,

    #[arg(long)]
    kubeconfig: PathBuf,

    /// The value of leaseTransitions, different in each run
    #[arg(long, default_value_t = 0)]
    transitions: u16,

    /// How the names of the patched Leases begin
    #[arg(long, default_value_t)]
    prefix: String,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        block_on(async {
            let client = client(&self.kubeconfig).await?;
            match self.requested {
                Requested::Acquire => acquire(&client, self.transitions).await,
                Requested::Lists => lists(client).await,
                Requested::AcquireMany => patch_all(client, &self.prefix, Write::Acquire).await,
                Requested::ReleaseMany => patch_all(client, &self.prefix, Write::Release).await,
            }
        })
    }
}

async fn acquire(client: &Client, transitions: u16) -> Result<()> {
    let node = Request::get(format!("/api/v1/nodes/{NODE}")).body(Vec::new())?;
    let lease = Request::get(lease_path(NODE)).body(Vec::new())?;
    try_join!(client.request_text(node), client.request_text(lease))?;
    client.request_text(patch(NODE, transitions)?).await?;
    Ok(())
}

async fn lists(client: Client) -> Result<()> {
    let requests = Requests::new(client, None);
    let list = |path| {
        let requests = &requests;
        async move { requests.list_encoded_pages(path, |_| Ok(None::<()>)).await }
    };
    try_join!(
        list("/api/v1/nodes"),
        list("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"),
        list("/apis/coordination.k8s.io/v1/namespaces/kube-node-maintenance/leases"),
    )?;
    Ok(())
}

/// The request that patches a Lease with an [`acquisition`].
pub(super) fn patch(node: &str, transitions: u16) -> Result<Request<Vec<u8>>> {
    Ok(Request::patch(lease_path(node))
        .header("Content-Type", "application/merge-patch+json")
        .body(serde_json::to_vec(&acquisition(transitions))?)?)
}

/// The content of an acquisition: five fields and an annotation. It changes the Lease only if `transitions` differs
/// from the stored value.
pub(super) fn acquisition(transitions: u16) -> Value {
    json!({
        "metadata": {"annotations": {"kubectl-maint.dev/reason": "bench"}},
        "spec": acquired(transitions.into()),
    })
}

fn lease_path(node: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{node}")
}
