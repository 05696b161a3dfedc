//! A list of Leases, and the bare patches that an acquisition or a release of many nodes sends.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use connect::{Environment, Flags, Notices, connect};
use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

/// The namespace of the Leases.
pub(super) const NAMESPACE: &str = "kube-node-maintenance";

/// The number of concurrent requests, as in the plugin.
const PARALLEL: usize = 32;

/// The kind of write for the Leases.
pub(super) enum Write {
    /// Acquire free Leases.
    Acquire,
    /// Release held Leases.
    Release,
}

/// Lists the Leases, and patches those whose names begin with `prefix`.
pub(super) async fn patch_all(client: Client, prefix: &str, write: Write) -> Result<()> {
    let leases = Api::<Lease>::namespaced(client, NAMESPACE);
    let patch = match write {
        Write::Acquire => acquisition,
        Write::Release => release,
    };
    let parameters = PatchParams {
        field_manager: Some("kubectl-maint".to_owned()),
        ..PatchParams::default()
    };
    let listed = leases.list(&ListParams::default()).await?.into_iter();
    let named = listed.filter_map(|lease| {
        let name = lease.metadata.name.clone()?;
        name.starts_with(prefix).then_some((name, lease))
    });
    let mut patched = futures::stream::iter(named)
        .map(|(name, lease)| {
            let (leases, parameters) = (&leases, &parameters);
            let patch = Patch::Merge(patch(&lease));
            async move { leases.patch(&name, parameters, &patch).await }
        })
        .buffer_unordered(PARALLEL);
    while let Some(patched) = patched.next().await {
        patched.context("a raw patch")?;
    }
    Ok(())
}

/// An administrator's client, like that of the plugin: HTTP/2, without retries.
pub(super) async fn client(kubeconfig: &Path) -> Result<Client> {
    let flags = Flags {
        kubeconfig: Some(kubeconfig.to_owned()),
        ..Flags::default()
    };
    let environment = Environment::of_variables::<OsString, OsString>([]);
    let silent: Notices = Arc::new(|_| {});
    let connection = connect(&flags, &environment, "kubectl-maint-bench", &silent).await?;
    Ok(connection.client)
}

/// The patch that acquires a free Lease.
fn acquisition(lease: &Lease) -> Value {
    let transitions = lease.spec.as_ref().and_then(|spec| spec.lease_transitions);
    let transitions = transitions.unwrap_or(0) + 1;
    json!({
        "metadata": {
            "resourceVersion": lease.metadata.resource_version,
            "annotations": {
                "kubectl-maint.dev/acquisition": format!("{transitions}-benchbenchbenchbench"),
                "kubectl-maint.dev/reason": "bench",
                "kubectl-maint.dev/hold-until": null,
            },
        },
        "spec": acquired(transitions),
    })
}

/// The spec of a Lease that was acquired.
pub(super) fn acquired(transitions: i32) -> Value {
    json!({
        "holderIdentity": "bench@here",
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseDurationSeconds": 1800,
        "leaseTransitions": transitions,
    })
}

/// The patch of a release.
fn release(lease: &Lease) -> Value {
    let transitions = lease.spec.as_ref().and_then(|spec| spec.lease_transitions);
    let mark = format!("{}-benchbenchbenchbench", transitions.unwrap_or(0));
    json!({
        "metadata": {
            "resourceVersion": lease.metadata.resource_version,
            "annotations": {
                "kubectl-maint.dev/acquisition": null,
                "kubectl-maint.dev/hold-until": null,
                "kubectl-maint.dev/last-acquisition": mark,
                "kubectl-maint.dev/last-holder": "bench@here",
                "kubectl-maint.dev/reason": null,
                "kubectl-maint.dev/released-at": "2026-01-01T00:00:00.000000Z",
            },
        },
        "spec": {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": "2026-01-01T00:00:00.000000Z",
        },
    })
}
