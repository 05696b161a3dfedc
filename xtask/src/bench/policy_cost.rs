//! How much longer the API server needs for a write if the policies check it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use chrono::{SecondsFormat, Utc};
use control_plane::{ControlPlane, NodeSpec};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::command_cost::{Tools, cost};
use super::quantiles::{Quantiles, millis};
use super::raw_patches::{NAMESPACE, client};
use crate::output::result;

/// How often the policies are switched off and on.
const ROUNDS: usize = 3;

/// The number of writes of each kind in a round.
const WRITES: usize = 200;

/// A node on hold with the held label, and a node without a lock.
const HELD: &str = "policy-held";
const FREE: &str = "policy-free";
/// The node with a lock that is renewed.
const LOCKED: &str = "policy-locked";

/// The times of each kind of write.
#[derive(Default)]
struct Times {
    held: Vec<Duration>,
    free: Vec<Duration>,
    lease: Vec<Duration>,
}

/// Prints the ratio for a Node with the held label, for one without it, and for a Lease.
pub(super) fn measure(plane: &ControlPlane, tools: &Tools) -> Result<()> {
    plane.create_nodes(&[HELD, FREE, LOCKED].map(NodeSpec::ready))?;
    let run = |arguments: &[&str]| cost(&tools.plugin(arguments)).map(drop);
    run(&["hold", HELD, "-m", "bench", "-q"])?;
    run(&["acquire", LOCKED, "-m", "bench", "-q", "--duration=1h"])?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("failed to start a runtime")?;
    let client = runtime.block_on(client(plane.admin_kubeconfig()))?;
    let (mut without, mut with) = (Times::default(), Times::default());
    for _ in 0..ROUNDS {
        runtime.block_on(without.write(&client))?;
        run(&["install"])?;
        run(&["enforce", "deny"])?;
        runtime.block_on(with.write(&client))?;
        run(&["uninstall", "--yes"])?;
    }
    run(&["unhold", HELD, "-q"])?;
    run(&["release", LOCKED, "-q"])?;
    let kinds = [
        ("a Node with the held label", without.held, with.held, "2.5"),
        ("another Node", without.free, with.free, "1.0"),
        ("a Lease", without.lease, with.lease, "1.75"),
    ];
    for (what, without, with, target) in kinds {
        let median = |times| Quantiles::of(times).quantile(0.5);
        let (without, with) = (median(without), median(with));
        result(format_args!(
            "patch of {what}, with policies in deny mode / without: {:.2} ({}, {}; target <= {target})",
            with.as_secs_f64() / without.as_secs_f64(),
            millis(with),
            millis(without),
        ));
    }
    Ok(())
}

impl Times {
    async fn write(&mut self, client: &Client) -> Result<()> {
        let nodes: Api<Node> = Api::all(client.clone());
        let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
        for number in 0..WRITES {
            let mark = json!({"metadata": {"annotations": {"bench.example.com/mark": number.to_string()}}});
            self.held.push(patch(&nodes, HELD, &mark).await?);
            self.free.push(patch(&nodes, FREE, &mark).await?);
            let now = Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true);
            let renewal = json!({"spec": {"renewTime": now}});
            self.lease.push(patch(&leases, LOCKED, &renewal).await?);
        }
        Ok(())
    }
}

async fn patch<K>(objects: &Api<K>, name: &str, patch: &Value) -> Result<Duration>
where
    K: Clone + std::fmt::Debug + DeserializeOwned + Resource<DynamicType = ()>,
{
    let parameters = PatchParams {
        field_manager: Some("kubectl-maint".to_owned()),
        ..PatchParams::default()
    };
    let begun = Instant::now();
    objects
        .patch(name, &parameters, &Patch::Merge(patch))
        .await?;
    Ok(begun.elapsed())
}
