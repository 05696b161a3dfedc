//! The keys of a lock on its Node, on a real kube-apiserver and in memory: server-side apply is the API server's work.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use control_plane::{NodeSpec, is_left_out, shared};
use http::{Method, Request};
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use maintenance_lease::{Acquire, ApiError, Error, Hold, Maintenance, NodeLease, Release};
use node_keys::{
    FIELD_MANAGER, Mismatch, Mode, NodeKeys, NotSet, Wanted, apply, clear, remove, set, wanted,
};
use sandbox::Sandbox;
use serde_json::{Value, json};

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";

const SCALE_DOWN: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
const FLUO: &str = "flatcar-linux-update.v1.flatcar-linux.net/reboot-paused";

/// What most of these locks ask for.
const KEYS: &str = "held,cordon,cluster-autoscaler,fluo";

/// A Node of a test.
#[derive(Clone)]
struct Case {
    node: &'static str,
    client: Client,
}

/// Runs `test` with a Node of this name on both servers.
fn on_both(node: &'static str, test: &impl AsyncFn(&Case)) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let sandbox = Sandbox::new();
        drop(sandbox.add_node(node));
        let client = sandbox.client();
        test(&Case { node, client }).await;
    });
    if is_left_out() {
        return;
    }
    let _logs = shared().keep_logs_on_panic(node);
    let created = shared().create_nodes(&[NodeSpec::ready(node)]);
    created.expect("a node");
    runtime.block_on(async {
        let client = client(shared().admin_kubeconfig()).await;
        test(&Case { node, client }).await;
    });
}

async fn client(kubeconfig: &Path) -> Client {
    let file = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(file, &options).await;
    let mut config = config.expect("a config");
    config.default_retry = false;
    Client::try_from(config).expect("a client")
}

impl Case {
    fn path(&self) -> String {
        format!("/api/v1/nodes/{}", self.node)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: &Value,
    ) -> Result<Value, kube::Error> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, kind)
            .body(body.to_string().into_bytes());
        self.client.request(request.expect("a request")).await
    }

    async fn json(&self) -> Value {
        let path = self.path();
        let read = self.send(Method::GET, &path, MERGE, &Value::Null).await;
        read.expect("a Node")
    }

    async fn node(&self) -> Node {
        serde_json::from_value(self.json().await).expect("a Node")
    }

    /// What a user sets.
    async fn patch(&self, body: &Value) {
        let path = format!("{}?fieldManager=kubectl", self.path());
        let patched = self.send(Method::PATCH, &path, MERGE, body).await;
        patched.expect("it is admitted");
    }

    async fn delete(&self) {
        let (path, body) = (self.path(), json!({}));
        let deleted = self
            .send(Method::DELETE, &path, "application/json", &body)
            .await;
        deleted.expect("it is deleted");
    }

    fn locks(&self) -> Maintenance {
        Maintenance::new(self.client.clone(), "alice").expect("a holder")
    }

    /// The same, but `act` runs before each of the first writes to the Node, after the Node was read.
    fn disturbed<F>(
        &self,
        times: u32,
        act: impl Fn(Case) -> F + Send + Sync + 'static,
    ) -> Maintenance
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (case, left) = (self.clone(), Arc::new(AtomicU32::new(times)));
        let act = Arc::new(act);
        let service = tower::service_fn(move |request: Request<Body>| {
            let (case, act, left) = (case.clone(), Arc::clone(&act), Arc::clone(&left));
            let sending = async move {
                let is_write =
                    request.method() == Method::PATCH && request.uri().path() == case.path();
                let count = |left: u32| left.checked_sub(1);
                if is_write
                    && left
                        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, count)
                        .is_ok()
                {
                    act(case.clone()).await;
                }
                case.client.send(request).await
            };
            Box::pin(sending) as Pin<Box<dyn Future<Output = _> + Send>>
        });
        let client = Client::new(service, "default");
        Maintenance::new(client, "alice").expect("a holder")
    }

    /// Locks the Node, and asks for `keys`. Writes only the Lease.
    async fn acquire(&self, keys: &str) -> NodeLease {
        let options = Acquire::new().reason("disk").keys(keys);
        let change = self.locks().try_acquire(self.node, &options).await;
        change.expect("it is free").lease.expect("a Lease")
    }

    async fn release(&self) {
        let released = self.locks().release(self.node, &Release::new()).await;
        released.expect("it is released");
    }

    async fn set(&self, lock: &NodeLease) -> Wanted {
        let set = set(&self.locks(), lock, Mode::Set).await;
        set.expect("they are set")
    }

    /// What is wrong with the keys.
    async fn mismatch(&self) -> Option<Mismatch> {
        let (keys, locks) = (NodeKeys::on(&self.node().await), self.locks());
        let lease = locks.get(self.node).await.expect("a Lease");
        keys.mismatch(lease.as_ref(), locks.server_time().now())
    }
}

fn annotation<'a>(node: &'a Value, key: &str) -> &'a Value {
    &node["metadata"]["annotations"][key]
}

/// The labels, the annotations, the cordon, and whether our field manager owns something.
fn of_users(node: &Value) -> (Value, Value, bool, bool) {
    let metadata = &node["metadata"];
    let mut annotations = metadata["annotations"].clone();
    // A controller sets it some time after the Node was created.
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.remove("node.alpha.kubernetes.io/ttl");
    }
    (
        metadata["labels"].clone(),
        annotations,
        node["spec"]["unschedulable"] == true,
        metadata["managedFields"]
            .to_string()
            .contains(FIELD_MANAGER),
    )
}

#[test]
fn keys_are_set_and_removed_and_nothing_else_changes() {
    on_both("keys-both", &async |case| {
        case.patch(&json!({"metadata": {
            "labels": {"pool": "gpu"}, "annotations": {"example.com/note": "mine"},
        }}))
        .await;
        let before = case.json().await;
        let lock = case.acquire(KEYS).await;
        let wanted = case.set(&lock).await;
        assert!(wanted.keys.cordon && wanted.conflicts.is_empty());
        let held = case.json().await;
        assert_eq!(
            held["metadata"]["labels"]["kubectl-maint.dev/held"],
            "alice"
        );
        assert_eq!(held["metadata"]["labels"]["pool"], "gpu");
        assert_eq!(held["spec"]["unschedulable"], true);
        for (key, value) in [
            (SCALE_DOWN, "true"),
            (FLUO, "true"),
            ("kubectl-maint.dev/held-by", "alice"),
            ("kubectl-maint.dev/held-reason", "disk"),
            ("example.com/note", "mine"),
        ] {
            assert_eq!(annotation(&held, key), value, "{key}");
        }
        // A second run has nothing to write.
        assert_eq!(apply(&case.node().await, &wanted.keys), None);

        case.release().await;
        let removed = remove(&case.locks(), &lock).await;
        assert!(removed.expect("they are removed"), "it is uncordoned");
        assert_eq!(of_users(&case.json().await), of_users(&before));
    });
}

#[test]
fn what_users_set_is_left_out_and_survives_the_end() {
    on_both("keys-users", &async |case| {
        case.patch(&json!({
            "metadata": {"annotations": {SCALE_DOWN: "true", FLUO: "false"}},
            "spec": {"unschedulable": true},
        }))
        .await;
        let before = case.json().await;
        let lock = case.acquire(KEYS).await;
        let wanted = case.set(&lock).await;
        let conflicts = wanted.conflicts.iter();
        let conflicts: Vec<_> = conflicts.map(|it| (&*it.key, &*it.value)).collect();
        assert_eq!(conflicts, [(FLUO, "false")]);
        assert!(wanted.stays_cordoned && !wanted.keys.cordon);
        let held = case.json().await;
        assert_eq!(annotation(&held, FLUO), "false");
        case.release().await;
        let removed = remove(&case.locks(), &lock).await;
        assert!(!removed.expect("they are removed"), "it stays cordoned");
        assert_eq!(of_users(&case.json().await), of_users(&before));
    });
}

#[test]
fn no_node_is_created_for_one_that_is_gone() {
    on_both("keys-gone", &async |case| {
        let lock = case.acquire(KEYS).await;
        // Deleted between the read and the apply.
        let locks = case.disturbed(1, async |case: Case| case.delete().await);
        let gone = set(&locks, &lock, Mode::Set).await;
        assert!(matches!(gone, Err(NotSet::NodeGone)), "{gone:?}");
        let read = case
            .send(Method::GET, &case.path(), MERGE, &json!(null))
            .await;
        assert!(read.is_err());
        // Another Node has the name now.
        let another = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": case.node}});
        let created = case.send(Method::POST, "/api/v1/nodes", "application/json", &another);
        created.await.expect("another Node");
        let gone = set(&case.locks(), &lock, Mode::Set).await;
        assert!(matches!(gone, Err(NotSet::NodeGone)), "{gone:?}");
        assert!(
            !remove(&case.locks(), &lock)
                .await
                .expect("nothing to remove")
        );
        assert!(NodeKeys::on(&case.node().await).is_empty());
    });
}

#[test]
fn a_node_that_keeps_changing_is_read_and_written_five_times() {
    on_both("keys-conflicts", &async |case| {
        let touch = async |case: Case| {
            let now = chrono::Utc::now().to_rfc3339();
            let touched = json!({"metadata": {"annotations": {"example.com/now": now}}});
            case.patch(&touched).await;
        };
        let lock = case.acquire(KEYS).await;
        let failed = set(&case.disturbed(5, touch), &lock, Mode::Set).await;
        match failed {
            Err(NotSet::Failed(Error::Api(error))) => assert!(error.is_conflict(), "{error}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(case.mismatch().await, Some(Mismatch::Missing));
        let set = set(&case.disturbed(4, touch), &lock, Mode::Set).await;
        set.expect("the fifth try succeeds");
        assert_eq!(case.mismatch().await, None);
    });
}

#[test]
fn an_apply_that_arrives_after_the_end_of_its_lock_fails() {
    on_both("keys-late", &async |case| {
        for has_keys in [false, true] {
            let lock = case.acquire(KEYS).await;
            if has_keys {
                case.set(&lock).await;
            }
            let node = case.node().await;
            let mut keys = wanted(&node, &lock, Mode::Set).expect("keys").keys;
            // Otherwise, there would be nothing to write.
            keys.annotations
                .insert("example.com/late".to_owned(), "1".to_owned());
            let late = apply(&node, &keys).expect("an apply");
            case.release().await;
            remove(&case.locks(), &lock)
                .await
                .expect("they are removed");
            let path = format!("{}?fieldManager={FIELD_MANAGER}&force=true", case.path());
            let answer = case.send(Method::PATCH, &path, APPLY, &late).await;
            assert!(matches!(answer, Err(kube::Error::Api(status)) if status.code == 409));
            assert!(NodeKeys::on(&case.node().await).is_empty());
            assert_eq!(case.mismatch().await, None);
        }
        // The id of the ended lock goes with the next one.
        let ended = "kubectl-maint.dev/ended";
        let lock = case.acquire(KEYS).await;
        case.release().await;
        remove(&case.locks(), &lock)
            .await
            .expect("nothing is there");
        let id = lock.lock_id().expect("a lock id").to_string();
        assert_eq!(*annotation(&case.json().await, ended), id);
        let lock = case.acquire(KEYS).await;
        case.set(&lock).await;
        assert_eq!(*annotation(&case.json().await, ended), Value::Null);
    });
}

/// Carol takes over. She keeps the cordon, and Alice's end removes nothing of hers.
#[test]
fn the_end_of_a_lock_removes_no_keys_of_another_one() {
    on_both("keys-another", &async |case| {
        let first = case.acquire(KEYS).await;
        case.set(&first).await;
        let carol = case.locks().as_holder("carol").expect("a holder");
        let hold = Hold::new("mine now")
            .keys("held")
            .take_over([first.clone()]);
        let taken = carol.hold(case.node, &hold).await;
        let second = taken.expect("it is taken over").lease.expect("a Lease");
        let late = set(&case.locks(), &first, Mode::Set).await;
        assert!(matches!(late, Err(NotSet::LockEnded)), "{late:?}");
        let kept = set(&carol, &second, Mode::Set).await.expect("they are set");
        assert!(kept.keys.cordon && !kept.stays_cordoned);
        let held = case.json().await;
        assert_eq!(
            held["metadata"]["labels"]["kubectl-maint.dev/held"],
            "carol"
        );
        assert_eq!(*annotation(&held, SCALE_DOWN), Value::Null);
        assert!(
            !remove(&case.locks(), &first)
                .await
                .expect("nothing to remove")
        );
        assert_eq!(of_users(&case.json().await), of_users(&held));
        carol.unhold(case.node, None).await.expect("it is ended");
        assert!(remove(&carol, &second).await.expect("they are removed"));
        assert!(!of_users(&case.json().await).2);
    });
}

/// A command is killed between the Lease and the Node, at either end.
#[test]
fn what_a_killed_command_leaves_is_found_and_mended() {
    on_both("keys-killed", &async |case| {
        let lock = case.acquire(KEYS).await;
        assert_eq!(case.mismatch().await, Some(Mismatch::Missing));
        let set = set(&case.locks(), &lock, Mode::Update).await;
        assert!(set.expect("they are set").keys.cordon);
        assert_eq!(case.mismatch().await, None);
        // They belong to a lock that stands.
        let kept = clear(&case.locks(), case.node, false).await;
        assert_eq!(kept.expect("an answer"), None);
        case.release().await;
        assert_eq!(case.mismatch().await, Some(Mismatch::LeftOver));
        let removed = clear(&case.locks(), case.node, false).await;
        let removed = removed.expect("they are removed").expect("keys");
        assert!(removed.cordon && removed.annotations.contains_key(SCALE_DOWN));
        assert!(!of_users(&case.json().await).2);
        assert_eq!(case.mismatch().await, None);
        assert!(NodeKeys::on(&case.node().await).is_empty());
    });
}

/// Others own the keys of a copy, so nobody knows which opt-outs a lock had set.
#[test]
fn the_label_of_a_copied_node_is_cleared() {
    on_both("keys-copied", &async |case| {
        let lock = case.acquire(KEYS).await;
        case.set(&lock).await;
        let mut copy = case.json().await;
        case.delete().await;
        for key in [
            "uid",
            "resourceVersion",
            "managedFields",
            "creationTimestamp",
        ] {
            copy["metadata"]
                .as_object_mut()
                .expect("metadata")
                .remove(key);
        }
        let created = case.send(Method::POST, "/api/v1/nodes", "application/json", &copy);
        created.await.expect("a copy");
        let cleared = clear(&case.locks(), case.node, true).await;
        assert!(cleared.expect("it is cleared").is_some());
        let node = case.json().await;
        let maps = ["labels", "annotations"].map(|map| node["metadata"][map].as_object());
        let mut keys = maps.into_iter().flatten().flat_map(|map| map.keys());
        assert!(
            !keys.any(|key| key.starts_with("kubectl-maint.dev/held")),
            "{node}"
        );
        assert_eq!(annotation(&node, SCALE_DOWN), "true");
    });
}

/// Admission webhooks of other people may do this.
#[test]
fn keys_that_the_server_stores_differently_are_an_error() {
    on_both("keys-altered", &async |case| {
        let lock = case.acquire(KEYS).await;
        // The answer is that of a server that stored something else.
        let case_behind = case.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let case = case_behind.clone();
            let sending = async move {
                let is_write =
                    request.method() == Method::PATCH && request.uri().path() == case.path();
                let request = match is_write {
                    true => Request::get(case.path())
                        .body(Body::empty())
                        .expect("a request"),
                    false => request,
                };
                case.client.send(request).await
            };
            Box::pin(sending) as Pin<Box<dyn Future<Output = _> + Send>>
        });
        let locks = Maintenance::new(Client::new(service, "default"), "alice").expect("a holder");
        let is_altered = |error: &Error| matches!(error, Error::Api(ApiError::Altered));
        let stripped = set(&locks, &lock, Mode::Set).await;
        assert!(
            matches!(&stripped, Err(NotSet::Failed(error)) if is_altered(error)),
            "{stripped:?}"
        );
        case.set(&lock).await;
        case.release().await;
        let kept = remove(&locks, &lock).await.expect_err("the label stays");
        assert!(is_altered(&kept), "{kept}");
        let kept = clear(&locks, case.node, false)
            .await
            .expect_err("the label stays");
        assert!(is_altered(&kept), "{kept}");
    });
}
