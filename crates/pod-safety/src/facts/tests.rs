//! Tests how facts are derived from objects as the server sends them.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use maintenance_lease::protocol::{Instant, Now, Span};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::known::Why;

fn read<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("an object")
}

/// A pod of a StatefulSet on worker-1, with these volumes.
fn pod(ready: &str, volumes: &Value) -> Pod {
    read(json!({
        "metadata": {
            "name": "web-0", "namespace": "shop",
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Backup", "name": "b", "uid": "b-1"},
                {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "s-1", "controller": true},
            ],
        },
        "spec": {"nodeName": "worker-1", "containers": [], "volumes": volumes},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }))
}

/// The objects that were read in the pod's namespace, and the cluster's volumes.
fn evidence(sets: Value, claims: Value, volumes: Value) -> Evidence {
    let namespace = NamespaceEvidence {
        stateful_sets: Known::Yes(read(sets)),
        claims: Known::Yes(read(claims)),
        ..NamespaceEvidence::default()
    };
    Evidence {
        namespaces: [("shop".to_owned(), namespace)].into(),
        cluster: Cluster {
            volumes: Known::Yes(read(volumes)),
            attachments: Known::Yes(Vec::new()),
            drivers: Known::Yes(Vec::new()),
        },
        ..Evidence::default()
    }
}

fn facts(pod: &Pod, evidence: &Evidence) -> Facts {
    Facts::of(pod, evidence)
}

fn siblings(ready: &str, sets: Value) -> Option<Known<Siblings>> {
    let facts = facts(
        &pod(ready, &json!([])),
        &evidence(sets, json!([]), json!([])),
    );
    match facts.owner {
        Owner::Controller { siblings, .. } => siblings,
        _ => None,
    }
}

#[test]
fn a_member_is_not_its_own_sibling() {
    let set = |uid: &str| {
        json!([{
            "metadata": {"name": "web", "uid": uid},
            "spec": {"replicas": 3, "serviceName": "web", "selector": {}, "template": {}},
            "status": {"replicas": 3, "readyReplicas": 2},
        }])
    };
    let of = |ready| Some(Known::Yes(Siblings { replicas: 3, ready }));
    assert_eq!(siblings("False", set("s-1")), of(2));
    assert_eq!(siblings("True", set("s-1")), of(1));
    // A new set with the same name counts only its own pods.
    assert_eq!(siblings("True", set("s-2")), of(2));
}

#[test]
fn a_controller_that_was_made_anew_keeps_its_promises() {
    let owner = |kind: &str, group: &str, namespace: NamespaceEvidence| {
        let mut pod = pod("False", &json!([]));
        let owners = pod.metadata.owner_references.as_mut().expect("owners");
        owners[1].kind = kind.to_owned();
        owners[1].api_version = format!("{group}/v1");
        Owner::of(&pod, &namespace)
    };
    let anew = |owner: &Owner| match owner {
        Owner::Controller {
            what,
            promise,
            reference,
            ..
        } => {
            assert_eq!(reference.uid.as_deref(), Some("s-2"));
            (what.clone(), promise.clone())
        }
        other => panic!("{other:?}"),
    };
    let sets = json!([{
        "metadata": {"name": "web", "uid": "s-2"},
        "spec": {"replicas": 3, "serviceName": "web", "selector": {}, "template": {}},
    }]);
    let set = owner(
        "StatefulSet",
        "apps",
        NamespaceEvidence {
            stateful_sets: Known::Yes(read(sets)),
            ..NamespaceEvidence::default()
        },
    );
    let what = |kind: &str| format!("{kind}/web (a new one of that name)");
    let promise = Known::Yes(Promise::OneOfEachName);
    assert_eq!(anew(&set), (what("StatefulSet"), promise));

    let job = |policy: &str| {
        let jobs = json!([{
            "metadata": {"name": "web", "uid": "s-2"},
            "spec": {"podReplacementPolicy": policy, "template": {}},
        }]);
        let namespace = NamespaceEvidence {
            jobs: Known::Yes(read(jobs)),
            ..NamespaceEvidence::default()
        };
        owner("Job", "batch", namespace)
    };
    // A new Job, ReplicaSet, DaemonSet or ReplicationController has its own pods.
    let gone = |was: &str| Owner::Gone {
        was: format!("{was}/web"),
    };
    assert_eq!(job("Failed"), gone("Job"));
    assert_eq!(job("TerminatingOrFailed"), gone("Job"));

    let replicas = json!([{"metadata": {"name": "web", "uid": "s-2"}, "spec": {"selector": {}}}]);
    let namespace = NamespaceEvidence {
        replica_sets: Known::Yes(read(replicas)),
        ..NamespaceEvidence::default()
    };
    assert_eq!(owner("ReplicaSet", "apps", namespace), gone("ReplicaSet"));
    for uid in ["s-1", "s-2"] {
        let daemons = json!([{"metadata": {"name": "web", "uid": uid}}]);
        let namespace = NamespaceEvidence {
            daemon_sets: Known::Yes(read(daemons)),
            ..NamespaceEvidence::default()
        };
        let daemon = owner("DaemonSet", "apps", namespace);
        assert_eq!(daemon == gone("DaemonSet"), uid == "s-2", "{daemon:?}");
    }
}

#[test]
fn a_replication_controller_that_was_deleted_replaces_nothing() {
    let mut pod = pod("False", &json!([]));
    let owners = pod.metadata.owner_references.as_mut().expect("owners");
    (owners[1].kind, owners[1].api_version) = ("ReplicationController".to_owned(), "v1".to_owned());
    let is_gone = |read: Known<Vec<_>>| {
        let namespace = NamespaceEvidence {
            replication_controllers: read,
            ..NamespaceEvidence::default()
        };
        matches!(Owner::of(&pod, &namespace), Owner::Gone { .. })
    };
    assert!(is_gone(Known::Yes(Vec::new())));
    assert!(!is_gone(Known::Yes(read(
        json!([{"metadata": {"name": "web", "uid": "s-1"}}])
    ))));
    assert!(!is_gone(unread()));
}

/// The promise of the controller of a pod whose ReplicaSet `web` has so many `replicas` and belongs to a
/// Deployment `shop`.
fn promise_of_deployment(replicas: u32, deployments: Known<Value>) -> Known<Promise> {
    let mut pod = pod("False", &json!([]));
    let owners = pod.metadata.owner_references.as_mut().expect("owners");
    owners[1].kind = "ReplicaSet".to_owned();
    let sets = json!([{
        "metadata": {"name": "web", "uid": "s-1", "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "Deployment", "name": "shop", "uid": "d-1", "controller": true,
        }]},
        "spec": {"replicas": replicas, "selector": {}},
    }]);
    let namespace = NamespaceEvidence {
        replica_sets: Known::Yes(read(sets)),
        deployments: deployments.map(read),
        ..NamespaceEvidence::default()
    };
    match Owner::of(&pod, &namespace) {
        Owner::Controller { what, promise, .. } => {
            assert_eq!(what, "Deployment/shop");
            promise
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_deployment_that_recreates_waits_for_the_pods_of_earlier_revisions() {
    let deployments = |strategy: &str| {
        Known::Yes(json!([{
            "metadata": {"name": "shop", "uid": "d-1"},
            "spec": {"selector": {}, "template": {}, "strategy": {"type": strategy}},
        }]))
    };
    let none = Known::Yes(Promise::None);
    let waits = Known::Yes(Promise::NextRevisionWaits);
    for (replicas, strategy, expected) in [
        (0, "Recreate", &waits),
        // Its ReplicaSet has already created the replacement.
        (1, "Recreate", &none),
        (0, "RollingUpdate", &none),
        (1, "RollingUpdate", &none),
    ] {
        let found = promise_of_deployment(replicas, deployments(strategy));
        assert_eq!(&found, expected, "{replicas} {strategy}");
    }
    assert_eq!(promise_of_deployment(0, unread()), unread());
    assert_eq!(promise_of_deployment(1, unread()), none);
    // The Deployment was deleted, and creates nothing.
    assert_eq!(promise_of_deployment(0, Known::Yes(json!([]))), none);
}

#[test]
fn a_job_that_is_ending_counts_as_running_until_its_pods_have_ended() {
    let promise = |policy: &str, conditions: &[(&str, &str)]| {
        let mut pod = pod("False", &json!([]));
        let owners = pod.metadata.owner_references.as_mut().expect("owners");
        (owners[1].kind, owners[1].api_version) = ("Job".to_owned(), "batch/v1".to_owned());
        let conditions = conditions.iter();
        let conditions: Vec<Value> = conditions
            .map(|(kind, status)| json!({"type": kind, "status": status}))
            .collect();
        let jobs = json!([{
            "metadata": {"name": "web", "uid": "s-1"},
            "spec": {"podReplacementPolicy": policy, "template": {}},
            "status": {"conditions": conditions},
        }]);
        let namespace = NamespaceEvidence {
            jobs: Known::Yes(read(jobs)),
            ..NamespaceEvidence::default()
        };
        match Owner::of(&pod, &namespace) {
            Owner::Controller {
                promise: Known::Yes(promise),
                ..
            } => promise,
            other => panic!("{other:?}"),
        }
    };
    let (loose, strict) = ("TerminatingOrFailed", "Failed");
    for (policy, conditions, expected) in [
        (loose, &[][..], Promise::None),
        (strict, &[], Promise::NoneBeforeTheEnd),
        (loose, &[("FailureTarget", "False")], Promise::None),
        (loose, &[("FailureTarget", "True")], Promise::EndOfJobWaits),
        (
            strict,
            &[("SuccessCriteriaMet", "True")],
            Promise::EndOfJobWaits,
        ),
        (
            loose,
            &[("FailureTarget", "True"), ("Failed", "True")],
            Promise::None,
        ),
        (
            loose,
            &[("Complete", "True"), ("SuccessCriteriaMet", "True")],
            Promise::None,
        ),
    ] {
        assert_eq!(
            promise(policy, conditions),
            expected,
            "{policy} {conditions:?}"
        );
    }
}

/// The names of the volumes that are checked, for a claim `data` that is bound to a volume with this spec.
fn counting(volume: &Value, claim: &Value, spec: &Value) -> Vec<String> {
    let mut claim_spec = json!({"volumeName": "pv-1", "accessModes": ["ReadWriteOnce"]});
    let object = claim_spec.as_object_mut().expect("an object");
    object.extend(claim.as_object().expect("a change").clone());
    let claims = json!([
        {"metadata": {"name": "data"}, "spec": claim_spec},
        {"metadata": {"name": "web-0-data"}, "spec": claim_spec},
    ]);
    let volumes = json!([{"metadata": {"name": "pv-1"}, "spec": spec}]);
    let facts = facts(
        &pod("False", &json!([volume])),
        &evidence(json!([]), claims, volumes),
    );
    let named = facts.volumes.iter().map(|volume| volume.name.clone());
    named.collect()
}

#[test]
fn volumes_count_if_other_nodes_reach_them_and_the_pod_writes() {
    let disk = json!({"csi": {"driver": "disk.example.com", "volumeHandle": "v"}});
    let claimed = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}});
    let none = json!({});
    assert_eq!(counting(&claimed, &none, &disk), ["data"]);
    let nowhere: [String; 0] = [];
    let ephemeral = json!({"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}});
    let with_ephemeral = pod("False", &json!([ephemeral]));
    let found = facts(&with_ephemeral, &Evidence::default()).ephemeral;
    assert_eq!(found, ["data"]);
    for (volume, claim, spec) in [
        (
            &json!({"name": "data", "persistentVolumeClaim": {"claimName": "data", "readOnly": true}}),
            &none,
            &disk,
        ),
        (&claimed, &none, &json!({"local": {"path": "/mnt/a"}})),
        (&json!({"name": "data", "emptyDir": {}}), &none, &disk),
        (&ephemeral, &none, &disk),
    ] {
        assert_eq!(
            counting(volume, claim, spec),
            nowhere,
            "{volume} {claim} {spec}"
        );
    }
}

/// How the volume `data` of a pod is guarded and attached, with these claims, PersistentVolumes and
/// attachments.
fn guarded(
    volume: Value,
    claims: Value,
    volumes: Value,
    attachments: Value,
) -> (Known<Option<String>>, Known<Option<String>>) {
    let mut volume = volume;
    volume["name"] = "data".into();
    let mut evidence = evidence(json!([]), claims, volumes);
    evidence.cluster.attachments = Known::Yes(read(attachments));
    let facts = facts(&pod("False", &json!([volume])), &evidence);
    let [volume] = &facts.volumes[..] else {
        panic!("{:?}", facts.volumes);
    };
    (volume.unguarded.clone(), volume.attached.clone())
}

#[test]
fn a_claim_that_leads_to_no_volume_says_nothing() {
    let claimed = || json!({"persistentVolumeClaim": {"claimName": "data"}});
    let claim = |spec| json!([{"metadata": {"name": "data"}, "spec": spec}]);
    let bound = || claim(json!({"volumeName": "pv-1"}));
    let strange = json!([{"metadata": {"name": "pv-1"}, "spec": {"ofTheFuture": {}}}]);
    let none = || json!([]);
    for (claims, volumes, why) in [
        (none(), none(), "claim data is missing"),
        (
            bound(),
            none(),
            "pv-1, the volume of claim data, is missing",
        ),
        (bound(), strange, "its kind is unknown"),
    ] {
        let unknown = || Known::Unknown(Why::Inconclusive(why.to_owned()));
        let found = guarded(claimed(), claims, volumes, none());
        assert_eq!(found, (unknown(), unknown()));
    }
}

#[test]
fn a_claim_that_was_never_bound_has_no_volume() {
    let volume = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    let mut pod = pod("False", &volume);
    let time = |at| read::<Time>(json!(at));
    pod.metadata.creation_timestamp = Some(time("2026-11-22T18:00:00Z"));
    let volumes = |claim_created: &str| {
        let metadata = json!({"name": "data", "creationTimestamp": claim_created});
        let claims = json!([{"metadata": metadata, "spec": {}}]);
        facts(&pod, &evidence(json!([]), claims, json!([]))).volumes
    };
    assert_eq!(volumes("2026-11-22T18:00:00Z"), []);
    let why = "claim data is newer than the pod, and bound to no volume".to_owned();
    let unknown = Known::Unknown(Why::Inconclusive(why));
    let [replaced] = &volumes("2026-11-22T18:00:01Z")[..] else {
        panic!("one volume");
    };
    assert_eq!(
        (&replaced.unguarded, &replaced.attached),
        (&unknown, &unknown)
    );
}

#[test]
fn a_claim_that_is_being_deleted_may_take_its_volume_along() {
    let deleted = |read_only: bool, claim: Value, policy: &str| {
        let used = json!({"claimName": "data", "readOnly": read_only});
        let volume = json!([{"name": "data", "persistentVolumeClaim": used}]);
        let mut metadata = json!({"name": "data"});
        let fields = metadata.as_object_mut().expect("an object");
        fields.extend(claim.as_object().expect("a change").clone());
        let claims = json!([{"metadata": metadata, "spec": {"volumeName": "pv-1"}}]);
        let spec = json!({"persistentVolumeReclaimPolicy": policy});
        let volumes = json!([{"metadata": {"name": "pv-1"}, "spec": spec}]);
        let evidence = evidence(json!([]), claims, volumes);
        facts(&pod("False", &volume), &evidence).deleted_claims
    };
    let going = || json!({"deletionTimestamp": "2026-11-22T18:00:00Z"});
    let one = |with_volume| {
        Known::Yes(vec![DeletedClaim {
            name: "data".to_owned(),
            with_volume: Known::Yes(with_volume),
        }])
    };
    assert_eq!(deleted(false, json!({}), "Delete"), Known::Yes(vec![]));
    assert_eq!(deleted(false, going(), "Delete"), one(true));
    assert_eq!(deleted(true, going(), "Delete"), one(true));
    assert_eq!(deleted(false, going(), "Retain"), one(false));
}

#[test]
fn volumes_that_several_nodes_may_attach_are_not_guarded() {
    let claimed = || json!({"persistentVolumeClaim": {"claimName": "data"}});
    let found = |claim: &[&str], modes: &[&str], source: Value| {
        let spec = json!({"volumeName": "pv-1", "accessModes": claim});
        let claims = json!([{"metadata": {"name": "data"}, "spec": spec}]);
        let mut spec = source;
        spec["accessModes"] = json!(modes);
        let volumes = json!([{"metadata": {"name": "pv-1"}, "spec": spec}]);
        let attachments = json!([{
            "metadata": {"name": "va-1"},
            "spec": {
                "attacher": "d", "nodeName": "worker-1",
                "source": {"persistentVolumeName": "pv-1"},
            },
        }]);
        guarded(claimed(), claims, volumes, attachments)
    };
    let csi = || json!({"csi": {"driver": "d", "volumeHandle": "v"}});
    let attached = (Known::Yes(None), Known::Yes(Some("va-1".to_owned())));
    let (once, many, reads) = ("ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany");
    assert_eq!(found(&[once], &[once], csi()), attached);
    let shared = |modes: &str| {
        let kind = format!("{modes}: Kubernetes attaches it to a second node immediately");
        (Known::Yes(Some(kind)), Known::Yes(None))
    };
    assert_eq!(found(&[many], &[many], csi()), shared(many));
    // The access modes of the volume count, not those of the claim.
    assert_eq!(
        found(&[once], &[once, many], csi()),
        shared("ReadWriteOnce, ReadWriteMany")
    );
    assert_eq!(found(&[once], &[], csi()), shared("no access mode"));
    let inconclusive = "it should only be read, but nothing prevents writing";
    let inconclusive = (
        Known::Unknown(Why::Inconclusive(inconclusive.to_owned())),
        Known::Yes(None),
    );
    assert_eq!(found(&[reads], &[reads], csi()), inconclusive);
    let nfs = |read_only: bool| json!({"nfs": {"server": "s", "path": "/", "readOnly": read_only}});
    assert_eq!(found(&[reads], &[reads], nfs(false)), inconclusive);
    assert_eq!(found(&[many], &[many], nfs(true)), inconclusive);
}

#[test]
fn a_disk_that_is_attached_without_a_driver_is_found_in_the_status_of_its_node() {
    let iscsi = json!({"targetPortal": "p", "iqn": "i", "lun": 0});
    let volume = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    let claims = json!([{"metadata": {"name": "data"}, "spec": {"volumeName": "pv-1"}}]);
    let spec = json!({"accessModes": ["ReadWriteOnce"], "iscsi": iscsi});
    let volumes = json!([{"metadata": {"name": "pv-1"}, "spec": spec}]);
    let attached = |node: Known<Option<Value>>| {
        let mut evidence = evidence(json!([]), claims.clone(), volumes.clone());
        let present = |node| PresentNode::of(&read(node), unread());
        let node = NodeFacts {
            node: node.map(|node| node.map(present)),
            ..NodeFacts::default()
        };
        evidence.nodes.insert("worker-1".to_owned(), node);
        let facts = facts(&pod("False", &volume), &evidence);
        assert_eq!(facts.volumes[0].unguarded, Known::Yes(None));
        facts.volumes[0].attached.clone()
    };
    let node = |name: &str| {
        let attached = json!([{"name": name, "devicePath": ""}]);
        Known::Yes(Some(
            json!({"metadata": {}, "status": {"volumesAttached": attached}}),
        ))
    };
    let name = "kubernetes.io/iscsi/p:i:0";
    assert_eq!(attached(node(name)), Known::Yes(Some(name.to_owned())));
    assert_eq!(
        attached(node("kubernetes.io/iscsi/p:i:1")),
        Known::Yes(None)
    );
    let gone = Known::Unknown(Why::Inconclusive("its Node is gone".to_owned()));
    assert_eq!(attached(Known::Yes(None)), gone);
    assert_eq!(attached(unread()), unread());
}

#[test]
fn a_path_of_the_node_may_lead_to_others() {
    let path = json!([{"name": "data", "hostPath": {"path": "/mnt/a"}}]);
    let mut pod = pod("False", &path);
    let facts = facts(&pod, &Evidence::default());
    assert!(matches!(
        facts.volumes[0].unguarded,
        Known::Unknown(Why::Inconclusive(_))
    ));
    // A DaemonSet recreates its pod on the same node only.
    let owners = pod.metadata.owner_references.as_mut().expect("owners");
    owners[1].kind = "DaemonSet".to_owned();
    assert_eq!(super::Facts::of(&pod, &Evidence::default()).volumes, []);
}

#[test]
fn a_disk_without_a_persistent_volume_is_known_by_its_driver() {
    let disk = || json!({"awsElasticBlockStore": {"volumeID": "vol-1"}});
    let attachment = |driver, node, source| {
        json!([{
            "metadata": {"name": "va-1"},
            "spec": {"attacher": driver, "nodeName": node, "source": source},
        }])
    };
    let inline = || json!({"inlineVolumeSpec": {"csi": {"driver": "d", "volumeHandle": "vol-1"}}});
    let here = Some("va-1".to_owned());
    let persistent = json!({"persistentVolumeName": "pv-9"});
    for (attachments, expected) in [
        (json!([]), None),
        (attachment("ebs.csi.aws.com", "worker-1", inline()), here),
        (attachment("ebs.csi.aws.com", "worker-2", inline()), None),
        (attachment("ebs.csi.aws.com", "worker-1", persistent), None),
        (attachment("disk.csi.azure.com", "worker-1", inline()), None),
    ] {
        let found = guarded(disk(), json!([]), json!([]), attachments.clone());
        let expected = (Known::Yes(None), Known::Yes(expected));
        assert_eq!(found, expected, "{attachments}");
    }
}

#[test]
fn a_pod_that_was_never_placed_writes_nowhere() {
    let mut pod = pod(
        "False",
        &json!([{"name": "data", "nfs": {"server": "s", "path": "/"}}]),
    );
    let of = |pod: &Pod| facts(pod, &Evidence::default()).volumes.len();
    assert_eq!(of(&pod), 1);
    pod.spec.as_mut().expect("a spec").node_name = None;
    assert_eq!(of(&pod), 0);
}

fn unread<T>() -> Known<T> {
    Known::Unknown(Why::NotRead)
}

#[test]
fn unread_facts_are_unknown() {
    let claimed = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    let facts = facts(&pod("False", &claimed), &Evidence::default());
    assert_eq!(facts.volumes.len(), 1);
    assert_eq!(facts.volumes[0].unguarded, unread());
    assert_eq!(facts.volumes[0].attached, unread());
    assert_eq!(facts.deleted_claims, unread());
    assert_eq!(facts.node.node, unread());
    assert_eq!(facts.node.lock, unread());
    assert_eq!(facts.budgets, unread());
    assert_eq!(facts.may_delete, unread());
}

#[test]
fn a_heartbeat_that_was_read_is_known_without_its_node() {
    let renewed = Known::Yes(Some(Instant::from_micros(7).into()));
    let node = NodeFacts {
        heartbeat: renewed.clone(),
        ..NodeFacts::default()
    };
    let evidence = Evidence {
        nodes: [("worker-1".to_owned(), node)].into(),
        ..Evidence::default()
    };
    let facts = facts(&pod("False", &json!([])), &evidence);
    assert_eq!(facts.node.node, unread());
    assert_eq!(facts.node.heartbeat, renewed);
}

#[test]
fn an_operator_is_at_work_until_its_lease_ran_out_for_every_clock() {
    let lease = read(json!({
        "metadata": {"name": "node-worker-1"},
        "spec": {
            "holderIdentity": "node-healthcheck",
            "leaseDurationSeconds": 60,
            "renewTime": "1970-01-01T00:10:00.000000Z",
        },
    }));
    let end = Instant::from_micros(660_000_000);
    let at = |seconds| Remediation::of(Some(&lease), Now::at(end + Span::seconds(seconds)));
    let holder = "node-healthcheck".to_owned();
    assert_eq!(at(3), Remediation::Running { holder });
    assert_eq!(at(4), Remediation::None);
}
