//! The example program: it skips nodes that somebody else has locked, and stops if it has lost its
//! lock.

use std::future::pending;

use maintenance_lease::{Acquire, Hold, Release};
use serde_json::json;

use crate::on_both_servers;
use crate::support::{Cluster, NODES};

#[path = "../../../../crates/maintenance-lease/examples/reboot_controller.rs"]
#[expect(dead_code, reason = "it is a program, of which one function is tested")]
mod reboot_controller;

on_both_servers! { a_reboot_controller_works_only_on_what_it_holds }

async fn a_reboot_controller_works_only_on_what_it_holds(cluster: Cluster) {
    let mut nodes = Vec::new();
    for name in ["broken", "busy", "held", "idle", "seized"] {
        let node = cluster.node(name).await;
        let labels = json!({"example.com/reboot": "needed"});
        let path = format!("{NODES}/{node}");
        cluster
            .patch(&path, json!({"metadata": {"labels": labels}}))
            .await;
        nodes.push(node);
    }
    let [broken, busy, held, idle, seized] = &nodes[..] else {
        unreachable!("five were made")
    };
    let alice = cluster.holder("alice");
    alice.try_acquire(busy, &Acquire::new()).await.unwrap();
    alice.hold(held, &Hold::new("disk")).await.unwrap();
    let controller = cluster.holder("reboot-controller");
    let reboot = async |node: &str| {
        let lease = controller.get(node).await?.expect("it is under its lock");
        assert_eq!(lease.holder(), Some("reboot-controller"));
        if node == broken {
            return Err("it does not come back".into());
        }
        if node == seized {
            alice.force_release(&lease, &Release::new()).await?;
            pending::<()>().await;
        }
        Ok(())
    };

    let report = reboot_controller::round(&controller, reboot).await.unwrap();

    assert_eq!(
        report,
        [
            format!("{broken}: failed, it does not come back"),
            format!("{busy}: skipped, node/{busy} is held by alice"),
            format!("{held}: skipped, node/{held} is on hold by alice"),
            format!("{idle}: rebooted"),
            format!("{seized}: stopped, node/{seized} was released by alice"),
        ]
    );
    let holder = async |node: &str| {
        let lease = controller.get(node).await.unwrap().expect("a Lease");
        lease.holder().map(ToOwned::to_owned)
    };
    assert_eq!(holder(broken).await.as_deref(), Some("reboot-controller"));
    assert_eq!(holder(idle).await, None);
}
