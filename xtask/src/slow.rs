//! Behavior that takes minutes and can't be shortened, so it is not a test: Kubernetes detaches a volume by force six
//! minutes after its pod is gone, if the node is not healthy.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use control_plane::ControlPlane;
use serde_json::{Value, json};

use crate::output::print;
use crate::real_cluster::{create_objects, get, wait};

const DRIVER: &str = "disk.example.com";
const NODE: &str = "slow-1";

/// How long the attach-detach controller waits for the unmount.
const FORCED_DETACH: Duration = Duration::from_secs(6 * 60);

/// The latest time after that at which the volume must be detached.
const LATE: Duration = Duration::from_secs(2 * 60);

/// The age of the last heartbeat of the unreachable node.
const HEARTBEAT_AGE: Duration = Duration::from_secs(300);

/// Prove the forced detach after six minutes, with the real controllers
///
/// A pod with a volume runs on a node that becomes unreachable, and is force-deleted there. The volume must stay attached
/// for six minutes, and must be detached then. The command fails if it is not. It takes about seven minutes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        let plane = ControlPlane::builder().for_unreachable_nodes().start()?;
        let _driver = plane.csi_driver(DRIVER, true)?;
        let kubelets = plane.kubelets(&[NODE, "slow-2"], &[])?;
        create(&plane)?;
        let minute = Duration::from_secs(60);
        wait("the volume is attached and in use", minute, || {
            Ok(get(&plane, &["node", NODE])?["status"]["volumesInUse"].is_array())
        })?;
        let attachments = || get(&plane, &["volumeattachments"]);
        let attached = |list: &Value| list["items"][0]["status"]["attached"] == true;
        ensure!(
            attached(&attachments()?),
            "the VolumeAttachment is not attached"
        );
        kubelets.stop_heartbeats(NODE, HEARTBEAT_AGE)?;
        wait("the node is reported unreachable", minute, || {
            let node = get(&plane, &["node", NODE])?;
            let mut conditions = node["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten();
            Ok(conditions.any(|one| one["type"] == "Ready" && one["status"] == "Unknown"))
        })?;
        plane.kubectl(&["delete", "pod", "writer", "--force", "--grace-period=0"])?;
        let begun = Instant::now();
        print(format_args!(
            "pod/writer force-deleted on the unreachable node/{NODE}: its volume is still attached"
        ));
        let mut minutes = 0;
        wait("the volume is detached", FORCED_DETACH + LATE, || {
            let passed = begun.elapsed().as_secs() / 60;
            if passed > minutes {
                minutes = passed;
                print(format_args!("  after {minutes} min: still attached"));
            }
            Ok(!attached(&attachments()?))
        })?;
        let took = begun.elapsed();
        print(format_args!("detached by force after {} s", took.as_secs()));
        ensure!(
            took >= FORCED_DETACH,
            "the volume was detached after {} s, before the six minutes were over",
            took.as_secs()
        );
        let node = get(&plane, &["node", NODE])?;
        ensure!(
            node["status"]["volumesInUse"].is_array(),
            "its kubelet has unmounted the volume, so the detach was not forced"
        );
        Ok(())
    }
}

/// Creates a pod on the node, with a volume of the driver.
fn create(plane: &ControlPlane) -> Result<()> {
    let storage = json!({"storage": "1Gi"});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "data"},
            "spec": {
                "capacity": storage, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
                "claimRef": {"namespace": "default", "name": "data"},
                "csi": {"driver": DRIVER, "volumeHandle": "data"},
            },
        },
        {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "",
                "resources": {"requests": storage}, "volumeName": "data",
            },
        },
        {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "writer"},
            "spec": {
                "nodeName": NODE,
                // The pod tolerates all taints, so no controller deletes it.
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "c", "image": "none"}],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            },
        },
    ]});
    create_objects(plane, &list)
}
