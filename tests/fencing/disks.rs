//! Volumes on an unreachable node, as the attach-detach controller handles them.

use serde_json::{Value, json};

use crate::support::database::set;
use crate::support::{HEARTBEAT_AGE, Stage, VOLUME_ATTACHMENTS, eventually};

/// A StatefulSet of one pod with a volume: the report before its deletion on an unreachable node, and the result.
struct Row {
    set: &'static str,
    mode: &'static str,
    source: Value,
    /// The finding about the volume in the report.
    finding: &'static str,
    then: Then,
}

/// What happens to the replacement on another node.
enum Then {
    /// It runs at once, at the same time as the old pod.
    Runs,
    /// It waits until the volume with this name is detached from the old node.
    Waits(String),
}

/// The only pod of a StatefulSet.
fn pod(stage: &Stage, set: &str) -> Option<Value> {
    stage.find_pod(&format!("{set}-0"))
}

/// Waits for a pod of the set with another uid than `not`, and binds it to `node`.
fn place(stage: &Stage, set: &str, not: &Value, node: &str) -> Value {
    let other = || pod(stage, set).filter(|pod| pod["metadata"]["uid"] != *not);
    eventually("the set makes a pod", || other().is_some());
    let uid = other().expect("a pod")["metadata"]["uid"].clone();
    let bound = stage.plane.bind_pod(stage.own(), &format!("{set}-0"), node);
    bound.expect("it is placed");
    uid
}

/// The names of the volumes that are attached to a node.
fn attached(stage: &Stage, node: &str) -> String {
    stage.node(node)["status"]["volumesAttached"].to_string()
}

/// How many VolumeAttachments this driver has.
fn attachments(stage: &Stage, driver: &str) -> usize {
    let all = stage.list(VOLUME_ATTACHMENTS).into_iter();
    all.filter(|one| one["spec"]["attacher"] == driver).count()
}

/// A second writer starts at once if the volume is shared, or if its driver attaches nothing. It waits if the disk is
/// exclusive, with a CSI driver or without. `fence` detaches the disks.
#[test]
fn the_report_shows_what_becomes_of_each_volume() {
    let mut stage = Stage::new("disks");
    let _logs = stage.plane.keep_logs_on_panic("fencing-disks");
    let nodes = ["worker-1", "worker-2", "worker-3"].map(|name| stage.name(name));
    let [unreachable, other, _] = nodes.each_ref().map(String::as_str);
    let kubelets = stage.kubelets(&nodes.each_ref().map(String::as_str));
    let (disk, share) = (stage.driver("disk", true), stage.driver("share", false));
    let csi = |driver: &str, set: &str| json!({"csi": {"driver": driver, "volumeHandle": set}});
    let attached_as = |set: &str| format!("kubernetes.io/csi/{disk}^{set}");
    let iscsi = json!({"iscsi": {
        "targetPortal": "192.0.2.9:3260", "iqn": "iqn.2026-01.com.example:a", "lun": 0,
    }});
    let row = |set, mode, source, finding, then| Row {
        set,
        mode,
        source,
        finding,
        then,
    };
    let (risk, unguarded) = ("RISK     volume-attached", "RISK     volume-unguarded");
    let iscsi_name = "kubernetes.io/iscsi/192.0.2.9:3260:iqn.2026-01.com.example:a:0".to_owned();
    let rows = [
        row(
            "crowd",
            "ReadWriteMany",
            csi(&disk, "crowd"),
            unguarded,
            Then::Runs,
        ),
        row(
            "loose",
            "ReadWriteOnce",
            csi(&share, "loose"),
            unguarded,
            Then::Runs,
        ),
        row(
            "alone",
            "ReadWriteOnce",
            csi(&disk, "alone"),
            risk,
            Then::Waits(attached_as("alone")),
        ),
        row(
            "sole",
            "ReadWriteOncePod",
            csi(&disk, "sole"),
            risk,
            Then::Waits(attached_as("sole")),
        ),
        row(
            "block",
            "ReadWriteOnce",
            iscsi,
            risk,
            Then::Waits(iscsi_name),
        ),
    ];
    stage.create(&[stage.namespace()]);
    let before = rows.each_ref().map(|row| {
        stage.create(&set(&stage, row.set, row.mode, &row.source));
        let uid = place(&stage, row.set, &Value::Null, unreachable);
        eventually("it runs", || {
            pod(&stage, row.set).is_some_and(|pod| pod["status"]["phase"] == "Running")
        });
        uid
    });
    assert_eq!(
        (attachments(&stage, &disk), attachments(&stage, &share)),
        (3, 0)
    );
    kubelets
        .stop_heartbeats(unreachable, HEARTBEAT_AGE)
        .expect("its heartbeats stop");
    for (row, uid) in rows.iter().zip(&before) {
        let set = row.set;
        let target = format!("pod/{set}-0");
        let force = ["force-delete", &target, "-n", stage.own()];
        eventually("nothing is refused any more", || {
            let run = stage.maint(force).run();
            assert_eq!(run.code, 6, "{run}");
            let report = run.to_string();
            let over = !report.contains("BLOCKER");
            assert!(!over || report.contains(row.finding), "{report}");
            over
        });
        let words = ["--accept-risk", "-m", "the rack burns"];
        stage.maint(force).args(words).succeeds();
        place(&stage, set, uid, other);
        if matches!(row.then, Then::Runs) {
            eventually("it runs beside the old pod", || {
                pod(&stage, set).is_some_and(|pod| pod["status"]["phase"] == "Running")
            });
        }
    }
    let crowd = attached_as("crowd");
    for node in [unreachable, other] {
        assert!(attached(&stage, node).contains(&crowd), "{node}");
    }
    assert_eq!(attachments(&stage, &share), 0);
    let waiting = rows.iter().filter_map(|row| match &row.then {
        Then::Waits(volume) => Some((row.set, volume)),
        Then::Runs => None,
    });
    for (set, volume) in waiting.clone() {
        assert!(attached(&stage, unreachable).contains(volume), "{set}");
        assert!(!attached(&stage, other).contains(volume), "{set}");
        let events = format!(
            "/api/v1/namespaces/{}/events?fieldSelector=involvedObject.name={set}-0,reason=FailedAttachVolume",
            stage.own()
        );
        eventually("the controller refuses the second node", || {
            let events = Value::from(stage.list(&events)).to_string();
            events.contains("Multi-Attach error for volume")
        });
    }

    // `fence` detaches the disks, and also waits for the one without a VolumeAttachment.
    let run = stage
        .maint(["fence", unreachable, "--powered-off=dark"])
        .run();
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(
        stage.node(unreachable)["status"]["volumesAttached"],
        Value::Null
    );
    for (set, volume) in waiting {
        eventually("the other node gets it", || {
            attached(&stage, other).contains(volume)
        });
        eventually("the replacement runs", || {
            pod(&stage, set).is_some_and(|pod| pod["status"]["phase"] == "Running")
        });
    }
    stage.keep(kubelets);
}
