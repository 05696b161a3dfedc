//! Leases that do not belong to Nodes: in other namespaces, and in a part of a namespace by labels.

use std::time::Duration;

use control_plane::Rule;
use maintenance_lease::protocol::{Refusal, State};
use maintenance_lease::{
    Acquire, Change, Done, DryRun, Error, Hold, Maintenance, Release, Renew, Repository, Right,
    SideEffect,
};
use serde_json::{Value, json};

use crate::on_both_servers;
use crate::support::{Cluster, Wire, changed, on_kubernetes, refusal};

on_both_servers! {
    a_lease_elsewhere_locks_no_node,
    elsewhere_kubeadm_is_a_name_like_any_other,
    elsewhere_nobody_holds_as_an_administrator,
    a_namespace_that_is_not_there_is_not_made,
    messages_name_the_lease_and_its_namespace,
    two_applications_see_nothing_of_each_other,
    a_watch_gets_only_its_own_leases,
    a_lease_without_the_labels_is_left_alone,
    labels_that_others_add_stay,
    labels_can_distinguish_node_leases,
}

/// Creates a namespace for this case.
async fn namespace(cluster: &Cluster, short: &str) -> String {
    let name = cluster.name(short).replace('.', "-");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    cluster.create("/api/v1/namespaces", &namespace).await;
    name
}

fn leases_in(namespace: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")
}

fn holder(cluster: &Cluster, repository: &Repository, identity: &str) -> Maintenance {
    let builder = cluster.builder(identity).repository(repository.clone());
    builder.build().unwrap()
}

async fn acquire(locks: &Maintenance, name: &str) -> Change {
    locks.try_acquire(name, &Acquire::new()).await.unwrap()
}

async fn a_lease_elsewhere_locks_no_node(cluster: Cluster) {
    let namespace = namespace(&cluster, "apps").await;
    let wire = Wire::clear();
    let alice = cluster
        .builder_on(&wire, "alice")
        .repository(Repository::new(&namespace))
        .build()
        .unwrap();
    let change = acquire(&alice, "backup").await;
    assert_eq!((change.done, &change.row), (Done::Acquired, &None));
    assert_eq!(change.side_effects, [SideEffect::LeaseCreated]);
    assert_eq!(wire.requests(), ["GET lease", "POST lease"]);

    let lease = cluster
        .read(&format!("{}/backup", leases_in(&namespace)))
        .await;
    assert_eq!(lease["spec"]["holderIdentity"], "alice");
    assert_eq!(lease["metadata"]["ownerReferences"], Value::Null);
    assert_eq!(lease["metadata"]["labels"], Value::Null);

    alice.renew("backup", &Renew::new()).await.unwrap();
    alice.release("backup", &Release::new()).await.unwrap();
    let change = acquire(&alice, "backup").await;
    assert_eq!(change.lease.unwrap().transitions(), 2);
    let touched = wire.requests().iter().any(|what| what.ends_with("node"));
    assert!(!touched, "{:?}", wire.requests());
}

async fn elsewhere_kubeadm_is_a_name_like_any_other(cluster: Cluster) {
    let apps = Repository::new(namespace(&cluster, "apps").await);
    let host = holder(&cluster, &apps, "kubeadm-0");
    let change = acquire(&host, "backup").await;
    let lease = change.lease.unwrap();
    assert_eq!(lease.holder(), Some("kubeadm-0"));
    let now = host.server_time().now();
    assert!(matches!(lease.state(now), State::Held { .. }));

    let later = cluster.now() + chrono::TimeDelta::hours(1);
    let bob = cluster
        .builder_at(later, "bob")
        .repository(apps.clone())
        .build()
        .unwrap();
    let change = acquire(&bob, "backup").await;
    assert!(matches!(change.state_before, State::Expired { .. }));

    // For nodes, this holder would be a hold of alice. Here it is another identity.
    let other = holder(&cluster, &apps, "kubeadm:alice");
    acquire(&other, "restore").await;
    let alice = holder(&cluster, &apps, "alice");
    assert!(!alice.is_own(&alice.get("restore").await.unwrap().unwrap()));
    let refused = refusal(alice.release("restore", &Release::new()).await);
    assert_eq!(refused.refusal, Refusal::NotHolder);
}

async fn elsewhere_nobody_holds_as_an_administrator(cluster: Cluster) {
    let apps = Repository::new(namespace(&cluster, "apps").await);
    let alice = holder(&cluster, &apps, "alice");
    let error = alice.hold("backup", &Hold::new("disk")).await.unwrap_err();
    assert_eq!(error.to_string(), "only nodes can be put on hold");
    assert!(alice.get("backup").await.unwrap().is_none());
    acquire(&alice, "backup").await;
    let refused = refusal(alice.unhold("backup", None).await);
    assert_eq!(refused.refusal, Refusal::NotAHold);
}

async fn a_namespace_that_is_not_there_is_not_made(cluster: Cluster) {
    let missing = cluster.name("missing").replace('.', "-");
    let repository = Repository::new(&missing);
    let alice = holder(&cluster, &repository, "alice");
    assert!(alice.list().await.unwrap().is_empty());
    let dry = cluster.builder("alice").repository(repository);
    let dry = dry.dry_run(DryRun::Server).build().unwrap();
    for locks in [alice, dry] {
        let error = locks.try_acquire("backup", &Acquire::new()).await;
        assert_eq!(
            error.unwrap_err().to_string(),
            format!("Error from server (NotFound): namespaces \"{missing}\" not found")
        );
    }
}

async fn messages_name_the_lease_and_its_namespace(cluster: Cluster) {
    let namespace = namespace(&cluster, "apps").await;
    let apps = Repository::new(&namespace);
    let (alice, bob) = (
        holder(&cluster, &apps, "alice"),
        holder(&cluster, &apps, "bob"),
    );
    acquire(&alice, "backup").await;
    let refused = refusal(bob.try_acquire("backup", &Acquire::new()).await);
    assert_eq!(refused.to_string(), "lease/backup is held by alice");

    // The namespace stays in Terminating because of this finalizer.
    let path = format!("/api/v1/namespaces/{namespace}");
    let finalizers = |names: Value| json!({"metadata": {"finalizers": names}});
    cluster
        .patch(&path, finalizers(json!(["example.com/test"])))
        .await;
    cluster.delete(&path).await;
    let error = bob.try_acquire("restore", &Acquire::new()).await;
    cluster.patch(&path, finalizers(json!([]))).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        format!("namespace {namespace} is being deleted: no Lease can be created in it")
    );
}

/// Two applications that share a namespace.
async fn two_applications(cluster: &Cluster) -> (Maintenance, Maintenance, String) {
    let namespace = namespace(cluster, "apps").await;
    let shared = Repository::new(&namespace);
    let databases = shared.clone().label("app", "db").label("tier", "a");
    let queues = shared.label("app", "queue").label("tier", "a");
    (
        holder(cluster, &databases, "db-0"),
        holder(cluster, &queues, "queue-0"),
        leases_in(&namespace),
    )
}

async fn two_applications_see_nothing_of_each_other(cluster: Cluster) {
    let (db, queue, leases) = two_applications(&cluster).await;
    acquire(&db, "compaction").await;
    acquire(&queue, "rebalancing").await;
    let lease = cluster.read(&format!("{leases}/compaction")).await;
    assert_eq!(
        lease["metadata"]["labels"],
        json!({"app": "db", "tier": "a"})
    );

    let names = async |locks: &Maintenance| -> Vec<String> {
        locks.list().await.unwrap().into_keys().collect()
    };
    assert_eq!(names(&db).await, ["compaction"]);
    assert_eq!(names(&queue).await, ["rebalancing"]);
    db.release("compaction", &Release::new()).await.unwrap();
    acquire(&db, "compaction").await;

    // A name can be used once per namespace. The second client gets an error that explains this.
    let refused = refusal(queue.try_acquire("compaction", &Acquire::new()).await);
    assert_eq!(refused.refusal, Refusal::Foreign);
    assert_eq!(
        refused.to_string(),
        "lease/compaction lacks your labels and belongs to another application"
    );
}

async fn a_watch_gets_only_its_own_leases(cluster: Cluster) {
    let (db, queue, _) = two_applications(&cluster).await;
    acquire(&db, "one").await;
    acquire(&queue, "other").await;
    let mut follower = db.follow_all();
    let first = changed(&mut follower).await;
    assert_eq!(first.keys().collect::<Vec<_>>(), ["one"]);
    queue.renew("other", &Renew::new()).await.unwrap();
    acquire(&queue, "third").await;
    acquire(&db, "two").await;
    let next = changed(&mut follower).await;
    assert_eq!(next.keys().collect::<Vec<_>>(), ["two"]);

    let others = changed(&mut db.follow(["other"])).await;
    assert!(others["other"].is_none(), "{others:?}");
}

async fn a_lease_without_the_labels_is_left_alone(cluster: Cluster) {
    let (db, queue, leases) = two_applications(&cluster).await;
    let unlabeled = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "by-hand"},
        "spec": {},
    });
    let unlabeled = cluster.create(&leases, &unlabeled).await;
    acquire(&queue, "theirs").await;
    let theirs = cluster.read(&format!("{leases}/theirs")).await;

    for (name, before) in [("by-hand", unlabeled), ("theirs", theirs)] {
        let refusals = [
            refusal(db.try_acquire(name, &Acquire::new()).await),
            refusal(db.renew(name, &Renew::new()).await),
            refusal(db.release(name, &Release::new()).await),
            refusal(db.unhold(name, None).await),
            refusal(db.get(name).await),
            refusal(db.read(name, false).await),
        ];
        for refused in refusals {
            assert_eq!(refused.refusal, Refusal::Foreign, "{refused}");
        }
        assert_eq!(cluster.read(&format!("{leases}/{name}")).await, before);
    }
}

async fn labels_that_others_add_stay(cluster: Cluster) {
    let (db, _, leases) = two_applications(&cluster).await;
    let change = acquire(&db, "one").await;
    let path = format!("{leases}/one");
    cluster
        .patch(&path, json!({"metadata": {"labels": {"team": "blue"}}}))
        .await;
    let longer = Renew::new()
        .duration(Duration::from_secs(3600))
        .lock_id(change.lock_id().unwrap());
    db.renew("one", &longer).await.unwrap();
    db.release("one", &Release::new()).await.unwrap();
    let lease = cluster.read(&path).await;
    assert_eq!(
        lease["metadata"]["labels"],
        json!({"app": "db", "tier": "a", "team": "blue"})
    );
}

async fn labels_can_distinguish_node_leases(cluster: Cluster) {
    let (one, other) = (cluster.node("one").await, cluster.node("other").await);
    let label = cluster.name("pool");
    let repository = Repository::node_maintenance().label("pool", label);
    let scoped = holder(&cluster, &repository, "alice");
    let change = acquire(&scoped, &one).await;
    assert!(change.row.is_some(), "the Node is looked at");
    let owner = &cluster.lease(&one).await["metadata"]["ownerReferences"][0];
    assert_eq!(owner["name"], one);
    let everywhere = cluster.holder("bob");
    acquire(&everywhere, &other).await;

    let pool = scoped.list().await.unwrap();
    assert_eq!(pool.keys().collect::<Vec<_>>(), [&one]);
    assert!(everywhere.list().await.unwrap().contains_key(&one));
    let refused = refusal(scoped.try_acquire(&other, &Acquire::new()).await);
    assert_eq!(refused.refusal, Refusal::Foreign);
}

#[test]
fn a_missing_right_is_named_with_its_namespace() {
    on_kubernetes(module_path!(), async |cluster: Cluster| {
        let namespace = namespace(&cluster, "closed").await;
        let rights = [Rule::new("coordination.k8s.io", &["leases"], &["get"])];
        let user = cluster.user_builder("reader", &rights).await;
        let user = user
            .repository(Repository::new(&namespace).label("app", "db"))
            .build()
            .unwrap();
        let missing = |result: Result<Change, Error>| match result {
            Err(Error::MissingRight { right, .. }) => right,
            other => panic!("no right is missing: {other:?}"),
        };
        let right = |verb| Right {
            verb,
            resource: "leases.coordination.k8s.io",
            namespace: Some(namespace.clone()),
        };
        let created = user.try_acquire("backup", &Acquire::new()).await;
        assert_eq!(missing(created), right("create"));
        let listed = user.list().await;
        assert!(
            matches!(&listed, Err(Error::MissingRight { right: named, .. }) if *named == right("list"))
        );
    });
}
