//! What prevents two pods from writing to the same volume, and what does not.

use std::sync::atomic::{AtomicBool, Ordering};

use control_plane::Rule;
use serde_json::{Value, json};

use crate::fixture::{Fixture, fixture};
use crate::support::Treatment;

/// A claim bound to a volume of this source.
fn claim(fixture: &Fixture, name: &str, source: &Value) {
    claim_as(fixture, name, "ReadWriteOnce", source);
}

/// A claim bound to a volume of this source, with this access mode.
fn claim_as(fixture: &Fixture, name: &str, mode: &str, source: &Value) {
    let volume = fixture.cluster.name(name);
    let mut spec = json!({
        "capacity": {"storage": "1Gi"},
        "accessModes": [mode],
        "persistentVolumeReclaimPolicy": "Retain",
    });
    let object = spec.as_object_mut().expect("an object");
    object.extend(source.as_object().expect("a source").clone());
    let metadata = json!({"name": volume});
    fixture.cluster.create(
        "/api/v1/persistentvolumes",
        &json!({"metadata": metadata, "spec": spec}),
    );
    fixture.cluster.create(
        &fixture.at("/api/v1", "persistentvolumeclaims"),
        &json!({
            "metadata": {"name": name},
            "spec": {
                "accessModes": [mode],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "",
                "volumeName": volume,
            },
        }),
    );
}

fn driver(fixture: &Fixture, name: &str, attach_required: bool) -> String {
    let driver = format!("{}.example.com", fixture.cluster.name(name));
    let object = json!({
        "metadata": {"name": driver},
        "spec": {"attachRequired": attach_required},
    });
    fixture
        .cluster
        .create("/apis/storage.k8s.io/v1/csidrivers", &object);
    driver
}

fn attach(fixture: &Fixture, driver: &str, claim: &str, node: &str) {
    let object = json!({
        "metadata": {"name": fixture.cluster.name(&format!("{claim}-attachment"))},
        "spec": {
            "attacher": driver,
            "nodeName": node,
            "source": {"persistentVolumeName": fixture.cluster.name(claim)},
        },
    });
    fixture
        .cluster
        .create("/apis/storage.k8s.io/v1/volumeattachments", &object);
}

fn pod_with(fixture: &Fixture, name: &str, volume: &Value) {
    let set = fixture.replica_set(name);
    let spec = json!({"spec": {"volumes": [volume]}});
    fixture.ended_pod(name, Some(&set), &spec);
}

#[test]
fn attached_volumes_are_detached_by_force() {
    fixture("attached", |fixture| {
        let driver = driver(fixture, "disk", true);
        let source = |handle: &str| json!({"csi": {"driver": driver, "volumeHandle": handle}});
        for name in ["here", "elsewhere", "nowhere"] {
            claim(fixture, name, &source(name));
            let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": name}});
            pod_with(fixture, name, &volume);
        }
        attach(fixture, &driver, "here", &fixture.node);
        attach(
            fixture,
            &driver,
            "elsewhere",
            &fixture.cluster.name("worker-2"),
        );
        let levels = fixture.levels("here");
        levels.are(&[
            ("volume-attached", Some("Risk")),
            ("volume-unguarded", None),
        ]);
        let words = levels.words("volume-attached");
        assert!(words.ends_with(": here (ReadWriteOnce)"), "{words}");
        let forced =
            "by default detached by force 6m after the pod is gone, if the node is not ready";
        assert!(words.contains(forced), "{words}");
        assert_eq!(levels.confirm(), "--accept-risk=volume-attached");
        for name in ["elsewhere", "nowhere"] {
            fixture
                .levels(name)
                .are(&[("volume-attached", Some("Ok")), ("volume-unguarded", None)]);
        }
    });
}

/// Access modes do not protect a mounted volume. With some modes, Kubernetes attaches a volume to two nodes at the same
/// time.
#[test]
fn the_access_modes_of_a_volume_show_whether_two_nodes_may_write() {
    fixture("modes", |fixture| {
        let driver = driver(fixture, "disk", true);
        let csi = |handle: &str| json!({"csi": {"driver": driver, "volumeHandle": handle}});
        let nfs = json!({"nfs": {"server": "nfs.example.com", "path": "/export"}});
        claim_as(fixture, "library", "ReadOnlyMany", &nfs);
        claim_as(fixture, "printed", "ReadOnlyMany", &csi("printed"));
        claim_as(fixture, "alone", "ReadWriteOncePod", &csi("alone"));
        claim_as(fixture, "crowd", "ReadWriteMany", &csi("crowd"));
        claim_as(fixture, "share", "ReadWriteOncePod", &nfs);
        for name in ["library", "printed", "alone", "crowd", "share"] {
            let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": name}});
            pod_with(fixture, name, &volume);
        }
        for name in ["printed", "alone", "crowd"] {
            attach(fixture, &driver, name, &fixture.node);
        }
        for name in ["library", "printed"] {
            let levels = fixture.levels(name);
            levels.are(&[
                ("volume-unguarded", Some("Unread")),
                ("volume-attached", None),
            ]);
            let message = format!(
                "unknown whether anything prevents two writers on {name}: it should only be read, but nothing \
                 prevents writing"
            );
            assert_eq!(levels.words("volume-unguarded"), message);
        }
        let levels = fixture.levels("alone");
        levels.are(&[
            ("volume-attached", Some("Risk")),
            ("volume-unguarded", None),
        ]);
        let words = levels.words("volume-attached");
        assert!(words.ends_with(": alone (ReadWriteOncePod)"), "{words}");
        // A replacement does not wait for a detach.
        let levels = fixture.levels("crowd");
        levels.are(&[
            ("volume-unguarded", Some("Risk")),
            ("volume-attached", None),
        ]);
        let words = levels.words("volume-unguarded");
        let message = "crowd (ReadWriteMany: Kubernetes attaches it to a second node immediately)";
        assert!(words.contains(message), "{words}");
        // The scheduler applies the access mode to existing pods. A file server knows nothing about pods.
        fixture
            .levels("share")
            .are(&[("volume-unguarded", Some("Risk"))]);
    });
}

/// The control plane attaches iSCSI and Fibre Channel disks itself, without a VolumeAttachment.
#[test]
fn disks_without_a_driver_are_attached_too() {
    fixture("in-tree", |fixture| {
        let iscsi =
            json!({"targetPortal": "10.0.0.9:3260", "iqn": "iqn.2001-04.com.example:a", "lun": 0});
        claim(fixture, "block", &json!({"iscsi": iscsi}));
        claim(
            fixture,
            "fabric",
            &json!({"fc": {"targetWWNs": ["5005"], "lun": 1}}),
        );
        for name in ["block", "fabric"] {
            let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": name}});
            pod_with(fixture, name, &volume);
        }
        pod_with(fixture, "inline", &json!({"name": "data", "iscsi": iscsi}));
        let status = format!("/api/v1/nodes/{}/status", fixture.node);
        let name = "kubernetes.io/iscsi/10.0.0.9:3260:iqn.2001-04.com.example:a:0";
        let attached = json!({"status": {"volumesAttached": [{"name": name, "devicePath": ""}]}});
        fixture.cluster.patch(&status, &attached);
        for (pod, level) in [("block", "Risk"), ("fabric", "Ok")] {
            fixture
                .levels(pod)
                .are(&[("volume-attached", Some(level)), ("volume-unguarded", None)]);
        }
        let words = fixture.levels("block");
        let words = words.words("volume-attached");
        let uncut = "; the old pod can still write to iSCSI after the detach: block";
        assert!(words.contains(uncut), "{words}");
        // Without a PersistentVolume, the disk can be attached to several nodes.
        fixture.levels("inline").are(&[
            ("volume-attached", None),
            ("volume-unguarded", Some("Risk")),
        ]);
    });
}

#[test]
fn a_path_of_the_node_may_be_a_mount_that_others_reach() {
    fixture("host-path", |fixture| {
        let path = json!({"name": "data", "hostPath": {"path": "/mnt/share"}});
        pod_with(fixture, "web-1", &path);
        let levels = fixture.levels("web-1");
        levels.are(&[("volume-unguarded", Some("Unread"))]);
        let message = "unknown whether anything prevents two writers on data: a path of the node may be a mount that \
                    other nodes reach";
        assert_eq!(levels.words("volume-unguarded"), message);
        let daemon = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "uid": "d-1"},
        });
        fixture.ended_pod("logs", Some(&daemon), &json!({"spec": {"volumes": [path]}}));
        fixture
            .levels("logs")
            .are(&[("volume-unguarded", None), ("volume-attached", Some("Ok"))]);
    });
}

#[test]
fn volumes_without_attachment_allow_two_writers() {
    fixture("unguarded", |fixture| {
        let nfs = json!({"server": "nfs.example.com", "path": "/export"});
        claim(fixture, "share", &json!({"nfs": nfs}));
        let loose = driver(fixture, "loose", false);
        let csi = json!({"driver": loose, "volumeHandle": "v"});
        claim(fixture, "loose", &json!({"csi": csi}));
        for name in ["share", "loose"] {
            let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": name}});
            pod_with(fixture, name, &volume);
        }
        let mut read_only = nfs.clone();
        read_only["readOnly"] = true.into();
        pod_with(fixture, "inline", &json!({"name": "data", "nfs": nfs}));
        pod_with(
            fixture,
            "reading",
            &json!({"name": "data", "nfs": read_only}),
        );
        pod_with(fixture, "scratch", &json!({"name": "data", "emptyDir": {}}));
        let template = json!({"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        }});
        let ephemeral = json!({"name": "data", "ephemeral": {"volumeClaimTemplate": template}});
        pod_with(fixture, "own", &ephemeral);
        let levels = fixture.levels("own");
        levels.are(&[("volume-deleted", Some("Info")), ("volume-unguarded", None)]);
        let words = levels.words("volume-deleted");
        assert_eq!(
            words,
            "the data of its ephemeral volumes is deleted with it: data"
        );
        for name in ["share", "loose", "inline"] {
            let levels = fixture.levels(name);
            levels.are(&[
                ("volume-unguarded", Some("Risk")),
                ("volume-attached", None),
            ]);
            let words = levels.words("volume-unguarded");
            assert!(words.starts_with("NOTHING PREVENTS TWO WRITERS"), "{words}");
        }
        for name in ["reading", "scratch", "own"] {
            fixture
                .levels(name)
                .are(&[("volume-unguarded", None), ("volume-attached", Some("Ok"))]);
        }
    });
}

#[test]
fn only_a_claim_that_was_never_bound_leads_to_no_volume_for_sure() {
    fixture("unresolved", |fixture| {
        let csi = json!({"csi": {"driver": driver(fixture, "disk", true), "volumeHandle": "v"}});
        for name in ["bound", "volumeless"] {
            claim(fixture, name, &csi);
        }
        fixture.cluster.create(
            &fixture.at("/api/v1", "persistentvolumeclaims"),
            &json!({
                "metadata": {"name": "unbound"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                    "storageClassName": "",
                },
            }),
        );
        for name in ["bound", "volumeless", "unbound", "claimless"] {
            let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": name}});
            pod_with(fixture, name, &volume);
        }
        let gone = format!(
            "/api/v1/persistentvolumes/{}",
            fixture.cluster.name("volumeless")
        );
        fixture.cluster.delete(&gone);
        // Removes the finalizer, so that the volume disappears although it is bound.
        let unprotected = json!({"metadata": {"finalizers": null}});
        let _ = fixture.cluster.try_send("PATCH", &gone, Some(&unprotected));
        for name in ["bound", "unbound"] {
            fixture
                .levels(name)
                .are(&[("volume-attached", Some("Ok")), ("volume-unguarded", None)]);
        }
        for (name, why) in [
            ("claimless", "claim claimless is missing"),
            ("volumeless", "the volume of claim volumeless, is missing"),
        ] {
            let levels = fixture.levels(name);
            levels.are(&[
                ("volume-attached", Some("Unread")),
                ("volume-unguarded", Some("Unread")),
            ]);
            let words = levels.words("volume-attached");
            assert!(words.ends_with(why), "{words}");
            assert!(levels.confirm().contains("unread"), "{name}");
        }
    });
}

#[test]
fn volumes_without_a_claim_are_judged_by_their_kind() {
    fixture("inline", |fixture| {
        let disk = |driver: &str| {
            json!({"spec": {
                "attacher": driver,
                "nodeName": fixture.node,
                "source": {"inlineVolumeSpec": {
                    "accessModes": ["ReadWriteOnce"],
                    "csi": {"driver": driver, "volumeHandle": "disk-1"},
                }},
            }})
        };
        let mut attachment = disk("ebs.csi.aws.com");
        attachment["metadata"]["name"] = fixture.cluster.name("inline").into();
        fixture
            .cluster
            .create("/apis/storage.k8s.io/v1/volumeattachments", &attachment);
        for (name, volume, expected) in [
            (
                "ebs",
                json!({"awsElasticBlockStore": {"volumeID": "disk-1"}}),
                [
                    ("volume-attached", Some("Risk")),
                    ("volume-unguarded", None),
                ],
            ),
            (
                "cinder",
                json!({"cinder": {"volumeID": "disk-2"}}),
                [("volume-attached", Some("Ok")), ("volume-unguarded", None)],
            ),
            (
                "fc",
                json!({"fc": {"wwids": ["3600508b400105e210000900000490000"]}}),
                [
                    ("volume-attached", None),
                    ("volume-unguarded", Some("Risk")),
                ],
            ),
            (
                "flex",
                json!({"flexVolume": {"driver": "example.com/disk"}}),
                [
                    ("volume-attached", Some("Unread")),
                    ("volume-unguarded", Some("Unread")),
                ],
            ),
            (
                "secrets",
                json!({"csi": {"driver": "secrets-store.csi.k8s.io"}}),
                [("volume-attached", Some("Ok")), ("volume-unguarded", None)],
            ),
            (
                "csi-share",
                json!({"csi": {"driver": driver(fixture, "share", false)}}),
                [
                    ("volume-attached", None),
                    ("volume-unguarded", Some("Risk")),
                ],
            ),
            (
                "csi-disk",
                json!({"csi": {"driver": driver(fixture, "disk", true)}}),
                [("volume-attached", Some("Ok")), ("volume-unguarded", None)],
            ),
        ] {
            let mut volume = volume;
            volume["name"] = "data".into();
            pod_with(fixture, name, &volume);
            fixture.levels(name).are(&expected);
        }
        // Without the right to read drivers, it is unknown whether several nodes can use a driver's volumes.
        let pods = Rule::new("", &["pods"], &["get", "delete"]);
        let blind = fixture.user("blind", &[pods]);
        for (name, unguarded) in [("csi-share", Some("Unread")), ("secrets", None)] {
            let levels = fixture.levels_for(&blind, name);
            levels.are(&[("volume-unguarded", unguarded)]);
        }
    });
}

#[test]
fn an_accepted_unknown_is_confirmed_again_when_it_is_known() {
    fixture("worse", |fixture| {
        let nfs = json!({"server": "nfs.example.com", "path": "/export"});
        claim(fixture, "share", &json!({"nfs": nfs}));
        let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": "share"}});
        pod_with(fixture, "web-1", &volume);
        for confirm in [
            "--accept-risk",
            "--accept-risk=unread,volume-unguarded,volume-attached",
        ] {
            let failed = AtomicBool::new(false);
            let proxy = fixture
                .cluster
                .proxy_for(Treatment::Answer(500, None), move |_, path| {
                    path.contains("/persistentvolumeclaims")
                        && !failed.swap(true, Ordering::Relaxed)
                });
            let run = fixture
                .force_delete("web-1", &[confirm, "-m", "why"])
                .kubeconfig(&proxy.kubeconfig)
                .run();
            assert_eq!(run.code, 6, "{run}");
            assert!(run.stdout.contains("RISK     unread"), "{run}");
            assert!(run.stderr.contains("NOTHING PREVENTS TWO WRITERS"), "{run}");
            let message = "risks not accepted: volume-unguarded; nothing was deleted";
            assert!(run.stderr.contains(message), "{run}");
            assert!(fixture.is_there("web-1"));
        }
        let words = ["--accept-risk=volume-unguarded", "-m", "why"];
        fixture.force_delete("web-1", &words).succeeds();
        assert!(!fixture.is_there("web-1"));
    });
}
