//! Reboots the nodes that need it, one after the other, and leaves alone those that somebody else
//! holds: their turn comes with a later round.
//!
//! ```console
//! $ kubectl label node worker-1 worker-2 example.com/reboot=needed
//! $ cargo run --example reboot_controller
//! worker-1: rebooted
//! worker-2: skipped, node/worker-2 is held by alice@bastion
//! ```

use std::error::Error;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Config};
use maintenance_lease::{
    Acquire, Error as LeaseError, Guarded, HeldLease, Keep, Maintenance, RowDetail,
};
use serde_json::json;

/// Nodes say here what they need; an agent on the node reads `now`, and removes it after the boot.
const LABEL: &str = "example.com/reboot";

/// The lock is renewed all the while; a controller that crashes leaves it for this long.
const LEASE: Duration = Duration::from_secs(60);

/// How often a node is asked whether it is back.
const ASK: Duration = Duration::from_secs(10);

/// One round over the nodes that need a reboot. Returns a line about each.
///
/// # Errors
/// If the nodes can't be listed.
pub(crate) async fn round(
    maintenance: &Maintenance,
    reboot: impl AsyncFn(&str) -> Result<(), Box<dyn Error>>,
) -> Result<Vec<String>, LeaseError> {
    let mut report = Vec::new();
    let needed = format!("{LABEL}=needed");
    let acquire = Acquire::new()
        .reason("reboot into the new kernel")
        .duration(LEASE);
    for node in maintenance.nodes(Some(&needed), RowDetail::Cells).await? {
        let node = &node.name;
        let outcome = match maintenance.try_acquire(node, &acquire).await {
            Ok(change) => {
                let held = maintenance.keep(&change, &Keep::new()).await?;
                work(held, reboot(node)).await
            }
            Err(LeaseError::Refused(refused)) => format!("skipped, {refused}"),
            Err(error) => format!("failed, {error}"),
        };
        report.push(format!("{node}: {outcome}"));
    }
    Ok(report)
}

/// Reboots a node while holding its lock, then releases the lock.
async fn work(held: HeldLease, reboot: impl Future<Output = Result<(), Box<dyn Error>>>) -> String {
    match held.guard(reboot).await {
        Guarded::Completed(()) => match held.release().await {
            Ok(_) => "rebooted".to_owned(),
            Err(error) => format!("rebooted, but {error}"),
        },
        Guarded::Failed(error) => {
            // Without a release, the lock expires. Everybody then sees that its holder did not finish.
            held.leave();
            format!("failed, {error}")
        }
        Guarded::Lost(lost) => format!("stopped, {lost}"),
    }
}

/// Asks the agent for a reboot, until the node is back.
async fn reboot(client: &Client, node: &str) -> Result<(), Box<dyn Error>> {
    let nodes: Api<Node> = Api::all(client.clone());
    let now = Patch::Merge(json!({"metadata": {"labels": {LABEL: "now"}}}));
    nodes.patch(node, &PatchParams::default(), &now).await?;
    loop {
        tokio::time::sleep(ASK).await;
        let labels = nodes.get_metadata(node).await?.metadata.labels;
        if !labels.is_some_and(|labels| labels.contains_key(LABEL)) {
            return Ok(());
        }
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the report is this program's output")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut config = Config::infer().await?;
    config.default_retry = false;
    let client = Client::try_from(config)?;
    let maintenance = Maintenance::new(client.clone(), "reboot-controller")?;
    let reboot = async |node: &str| reboot(&client, node).await;
    for line in round(&maintenance, reboot).await? {
        println!("{line}");
    }
    Ok(())
}
