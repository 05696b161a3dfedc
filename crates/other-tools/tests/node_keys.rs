//! The keys of a lock on its Node, on a real kube-apiserver and in memory: server-side apply is the API server's work.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use control_plane::{NodeSpec, Rule, is_left_out, shared};
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use maintenance_lease::{ApiError, Requests};
use other_tools::{
    Conflict, FIELD_MANAGER, KeysOfLock, KeysRemoved, KeysSet, NodeKeys, clear_keys, remove_keys,
    set_keys,
};
use sandbox::Sandbox;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

const SCALE_DOWN: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
const DISRUPT: &str = "karpenter.sh/do-not-disrupt";
const ENDED: &str = "kubectl-maint.dev/breaks";
const LOCK_ID: &str = "kubectl-maint.dev/held-lock-id";

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));

fn client(kubeconfig: &Path) -> Client {
    RUNTIME.block_on(async {
        let file = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(file, &options).await;
        let mut config = config.expect("a config");
        config.default_retry = false;
        Client::try_from(config).expect("a client")
    })
}

/// A Node of a test, and an administrator who changes it.
struct Case {
    node: &'static str,
    admin: Client,
    /// `None`: the real server.
    sandbox: Option<Sandbox>,
}

/// Runs `test` with a Node of this name on both servers.
fn on_both(node: &'static str, test: impl Fn(&Case)) {
    let sandbox = Sandbox::new();
    let client_in_memory = RUNTIME.block_on(async { sandbox.client() });
    test(&Case::new(node, client_in_memory, Some(sandbox)));
    if !is_left_out() {
        let _logs = shared().keep_logs_on_panic(node);
        test(&Case::new(node, client(shared().admin_kubeconfig()), None));
    }
}

impl Case {
    fn new(node: &'static str, admin: Client, sandbox: Option<Sandbox>) -> Self {
        let case = Self {
            node,
            admin,
            sandbox,
        };
        case.create();
        case
    }

    fn create(&self) {
        match &self.sandbox {
            Some(sandbox) => drop(sandbox.add_node(self.node)),
            None => {
                let created = shared().create_nodes(&[NodeSpec::ready(self.node)]);
                created.expect("a node");
            }
        }
    }

    fn send(&self, method: &str, query: &str, kind: &str, body: &Value) -> Value {
        let request = Request::builder()
            .method(method)
            .uri(format!("/api/v1/nodes/{}{query}", self.node))
            .header(http::header::CONTENT_TYPE, kind)
            .body(body.to_string().into_bytes())
            .expect("a request");
        let answer = RUNTIME.block_on(self.admin.request(request));
        answer.expect("it is admitted")
    }

    fn read(&self) -> Value {
        self.send("GET", "", "application/json", &Value::Null)
    }

    fn uid(&self) -> String {
        self.read()["metadata"]["uid"]
            .as_str()
            .expect("a uid")
            .to_owned()
    }

    /// What a user sets with `kubectl annotate`.
    fn annotate(&self, key: &str, value: Option<&str>) {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        let kind = "application/merge-patch+json";
        self.send("PATCH", "?fieldManager=kubectl-annotate", kind, &patch);
    }

    /// The annotations that these tests are about.
    fn annotations(&self) -> BTreeMap<String, String> {
        let node = self.read();
        let all = node["metadata"]["annotations"].as_object();
        let known = [SCALE_DOWN, DISRUPT, ENDED, LOCK_ID];
        let pairs = all.into_iter().flatten();
        let pairs = pairs.filter(|(key, _)| known.contains(&key.as_str()));
        let pairs =
            pairs.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()));
        pairs.collect()
    }

    fn requests(&self) -> Requests {
        Requests::new(self.admin.clone(), Some(Duration::from_secs(30)))
    }

    fn lock<'a>(&'a self, uid: &'a str, lock_id: &'a str) -> KeysOfLock<'a> {
        KeysOfLock {
            node: self.node,
            uid,
            lock_id,
        }
    }

    fn set(&self, lock_id: &str, keys: &NodeKeys) -> KeysSet {
        let (uid, requests) = (self.uid(), self.requests());
        let setting = set_keys::<ApiError>(
            &requests,
            self.lock(&uid, lock_id),
            |_| keys.clone(),
            async || Ok(true),
        );
        RUNTIME.block_on(setting).expect("it is written")
    }

    fn remove(&self, lock_id: &str) -> KeysRemoved {
        let requests = self.requests();
        let shown = async || Ok(Some(lock_id.to_owned()));
        let removing = remove_keys::<ApiError>(&requests, self.node, Some(lock_id), shown);
        RUNTIME.block_on(removing).expect("it is written")
    }
}

fn keys() -> NodeKeys {
    let key = |key: &str| (key.to_owned(), "true".to_owned());
    NodeKeys {
        annotations: [key(SCALE_DOWN), key(DISRUPT)].into(),
        ..NodeKeys::default()
    }
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = pairs.iter();
    owned
        .map(|&(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

const DONE: KeysSet = KeysSet::Done(Vec::new());

fn assert_removed(removed: &KeysRemoved) {
    assert!(matches!(removed, KeysRemoved::Done(_)), "{removed:?}");
}

#[test]
fn keys_are_set_and_removed_and_nothing_else_changes() {
    on_both("keys-both", |case| {
        let before = case.read();
        let mut keys = keys();
        keys.labels = map(&[("kubectl-maint.dev/held", "true")]);
        keys.cordon = true;
        assert_eq!(case.set("u.1.a", &keys), DONE);
        let node = case.read();
        assert_eq!(node["spec"]["unschedulable"], true);
        assert_eq!(node["metadata"]["labels"]["kubectl-maint.dev/held"], "true");
        let set = map(&[(SCALE_DOWN, "true"), (DISRUPT, "true"), (LOCK_ID, "u.1.a")]);
        assert_eq!(case.annotations(), set);
        // The same again writes nothing: the Lease is read before each write.
        let (uid, requests) = (case.uid(), case.requests());
        let set_again = set_keys::<ApiError>(
            &requests,
            case.lock(&uid, "u.1.a"),
            |_| keys.clone(),
            async || panic!("it would write"),
        );
        assert_eq!(RUNTIME.block_on(set_again).expect("it is read"), DONE);

        assert_eq!(case.remove("u.1.a"), KeysRemoved::Done(keys));
        assert_eq!(case.annotations(), map(&[(ENDED, "u.1.a")]));
        let after = case.read();
        assert_eq!(after["spec"]["unschedulable"], Value::Null);
        let labels = &after["metadata"]["labels"];
        assert_eq!(labels["kubectl-maint.dev/held"], Value::Null);
        // Kubernetes may add labels of its own meanwhile.
        for (key, value) in before["metadata"]["labels"].as_object().expect("labels") {
            assert_eq!(labels[key], *value, "{key}");
        }
        assert_eq!(case.remove("u.1.a"), KeysRemoved::Nothing);
    });
}

#[test]
fn a_value_of_the_user_survives_the_end() {
    on_both("keys-user", |case| {
        case.annotate(SCALE_DOWN, Some("true"));
        assert_eq!(case.set("u.1.a", &keys()), DONE);
        let mut ours = keys();
        ours.annotations.remove(SCALE_DOWN);
        assert_eq!(case.remove("u.1.a"), KeysRemoved::Done(ours));
        let left = map(&[(SCALE_DOWN, "true"), (ENDED, "u.1.a")]);
        assert_eq!(case.annotations(), left);
    });
}

#[test]
fn another_value_of_the_user_is_reported_and_stays() {
    on_both("keys-conflict", |case| {
        // The server in memory records managers only after the first apply.
        assert_eq!(case.set("u.0.z", &NodeKeys::default()), DONE);
        case.annotate(DISRUPT, Some("false"));
        let conflict = Conflict {
            key: DISRUPT.to_owned(),
            value: "false".to_owned(),
            manager: Some("kubectl-annotate".to_owned()),
        };
        let reported = KeysSet::Done(vec![conflict]);
        assert_eq!(case.set("u.1.a", &keys()), reported);
        assert_eq!(case.set("u.1.a", &keys()), reported);
        let set = map(&[(SCALE_DOWN, "true"), (DISRUPT, "false"), (LOCK_ID, "u.1.a")]);
        assert_eq!(case.annotations(), set);
        assert_removed(&case.remove("u.1.a"));
        let left = map(&[(DISRUPT, "false"), (ENDED, "u.1.a")]);
        assert_eq!(case.annotations(), left);
        // After the user removed theirs, the next lock can set it.
        case.annotate(DISRUPT, None);
        assert_eq!(case.set("u.2.b", &keys()), DONE);
        assert_eq!(case.annotations()[DISRUPT], "true");
    });
}

#[test]
fn a_late_apply_for_an_ended_lock_fails() {
    on_both("keys-late", |case| {
        let (uid, requests) = (case.uid(), case.requests());
        // The lock ends between the read of the Node and the apply.
        assert_eq!(case.set("u.1.a", &NodeKeys::default()), DONE);
        let checks = Cell::new(0);
        let is_held = async || {
            if checks.replace(checks.get() + 1) == 0 {
                let shown = async || Ok(Some("u.1.a".to_owned()));
                let removing = remove_keys::<ApiError>(&requests, case.node, Some("u.1.a"), shown);
                assert_removed(&removing.await?);
            }
            // The release comes after that, so the Lease still shows the lock id.
            Ok::<_, ApiError>(true)
        };
        let late = keys();
        let setting = set_keys(
            &requests,
            case.lock(&uid, "u.1.a"),
            |_| late.clone(),
            is_held,
        );
        let set = RUNTIME.block_on(setting).expect("answers");
        assert_eq!(set, KeysSet::LockEnded);
        assert_eq!(case.annotations(), map(&[(ENDED, "u.1.a")]));
    });
}

#[test]
fn nothing_is_set_for_a_lock_that_the_lease_does_not_show() {
    on_both("keys-ended", |case| {
        let (uid, requests, keys) = (case.uid(), case.requests(), keys());
        let setting = set_keys::<ApiError>(
            &requests,
            case.lock(&uid, "u.1.a"),
            |_| keys.clone(),
            async || Ok(false),
        );
        let set = RUNTIME.block_on(setting).expect("answers");
        assert_eq!(set, KeysSet::LockEnded);
        assert!(case.annotations().is_empty());
    });
}

#[test]
fn keys_of_the_lock_that_the_lease_shows_stay_and_those_of_ended_ones_go() {
    on_both("keys-newer", |case| {
        let requests = case.requests();
        for (ending, shown, expected) in [
            (Some("u.1.a"), Some("u.2.b"), KeysRemoved::StillHeld),
            (None, Some("u.2.b"), KeysRemoved::StillHeld),
            (Some("u.1.a"), Some("u.1.a"), KeysRemoved::Done(keys())),
            (Some("u.1.a"), Some("u.3.c"), KeysRemoved::Done(keys())),
            (None, Some("u.3.c"), KeysRemoved::Done(keys())),
            (None, None, KeysRemoved::Done(keys())),
        ] {
            assert_eq!(case.set("u.2.b", &keys()), DONE);
            let shown = async || Ok(shown.map(ToOwned::to_owned));
            let removing = remove_keys::<ApiError>(&requests, case.node, ending, shown);
            let removed = RUNTIME.block_on(removing).expect("answers");
            assert_eq!(removed, expected, "{ending:?}");
            let has_keys = case.annotations().contains_key(LOCK_ID);
            assert_eq!(has_keys, expected == KeysRemoved::StillHeld, "{ending:?}");
            if has_keys {
                continue;
            }
            // A late apply finds the lock that is released next, not the one that the keys belonged to.
            let ended = ending.unwrap_or("u.2.b");
            assert_eq!(case.annotations(), map(&[(ENDED, ended)]), "{ending:?}");
            // The next round writes them again.
            case.annotate(ENDED, None);
        }
        let removing = remove_keys::<ApiError>(&requests, case.node, None, async || Ok(None));
        let removed = RUNTIME.block_on(removing).expect("answers");
        assert_eq!(removed, KeysRemoved::Nothing);
    });
}

/// The id of the lock was removed by hand. While nobody has the lock, somebody acquires it and labels the Node.
#[test]
fn keys_without_a_lock_id_go_but_not_those_of_a_lock_that_came_meanwhile() {
    on_both("keys-no-id", |case| {
        case.set("ended", &keys());
        case.annotate(LOCK_ID, None);
        let (uid, requests) = (case.uid(), case.requests());
        let comes = Cell::new(true);
        let shown = async || {
            if !comes.get() {
                return Ok(Some("new".to_owned()));
            }
            comes.set(false);
            let lock = case.lock(&uid, "new");
            let set = set_keys::<ApiError>(&requests, lock, |_| keys(), async || Ok(true));
            let set = set.await?;
            assert!(matches!(set, KeysSet::Done(_)), "{set:?}");
            Ok(None)
        };
        let removing = remove_keys::<ApiError>(&requests, case.node, None, shown);
        let removed = RUNTIME.block_on(removing).expect("it ends");
        assert_eq!(removed, KeysRemoved::StillHeld);
        assert_eq!(
            case.annotations().get(LOCK_ID).map(String::as_str),
            Some("new")
        );

        case.annotate(LOCK_ID, None);
        let shown = async || Ok(None);
        let removing = remove_keys::<ApiError>(&requests, case.node, None, shown);
        assert_removed(&RUNTIME.block_on(removing).expect("it ends"));
        assert_eq!(case.annotations(), BTreeMap::new());
    });
}

/// A kubelet may annotate its Node, but not remove such labels.
#[test]
fn a_forged_list_of_keys_removes_only_opt_outs() {
    on_both("keys-forged", |case| {
        let (requests, label) = (case.requests(), "example.com/team");
        let patch = json!({"metadata": {"labels": {label: "pci"}}});
        let kind = "application/merge-patch+json";
        let shown = async || Ok(None);
        for clears in [false, true] {
            case.send("PATCH", "?fieldManager=kubectl-label", kind, &patch);
            case.annotate(LOCK_ID, Some("x"));
            case.annotate(
                "kubectl-maint.dev/held-set",
                Some(&format!("{label},{DISRUPT}")),
            );
            case.annotate(DISRUPT, Some("true"));
            let removed = RUNTIME.block_on(async {
                match clears {
                    false => remove_keys::<ApiError>(&requests, case.node, None, shown).await,
                    true => clear_keys::<ApiError>(&requests, case.node, shown)
                        .await
                        .map(KeysRemoved::Done),
                }
            });
            removed.expect("it ends");
            assert_eq!(case.read()["metadata"]["labels"][label], "pci");
            let annotations = case.annotations();
            assert!(!annotations.contains_key(LOCK_ID) && !annotations.contains_key(DISRUPT));
        }
    });
}

/// The field manager that created the copy owns its keys, so an apply of ours does not remove them.
#[test]
fn keys_on_a_copy_of_a_node_are_replaced_and_removed_except_those_of_others() {
    on_both("keys-copied", |case| {
        let mut keys = keys();
        keys.labels = map(&[("kubectl-maint.dev/held", "true")]);
        keys.annotations.insert(
            "kubectl-maint.dev/held-reason".to_owned(),
            "disk".to_owned(),
        );
        keys.cordon = true;
        case.annotate(SCALE_DOWN, Some("true"));
        let copy = || {
            let mut copy = case.read();
            let metadata = copy["metadata"].as_object_mut().expect("metadata");
            metadata.retain(|key, _| ["name", "labels", "annotations"].contains(&&**key));
            case.send("DELETE", "", "application/json", &json!({}));
            let request = Request::post("/api/v1/nodes?fieldManager=kubectl-create")
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(copy.to_string().into_bytes())
                .expect("a request");
            let created: Result<Value, _> = RUNTIME.block_on(case.admin.request(request));
            created.expect("the copy");
        };
        let is_clear = |ended: &str| {
            let left = map(&[(SCALE_DOWN, "true"), (ENDED, ended)]);
            assert_eq!(case.annotations(), left);
            let node = case.read();
            let labels = &node["metadata"]["labels"];
            assert_eq!(labels["kubectl-maint.dev/held"], Value::Null);
            assert_eq!(node["spec"]["unschedulable"], Value::Null);
            let notes = node["metadata"]["annotations"].to_string();
            assert!(!notes.contains("kubectl-maint.dev/held-"), "{notes}");
        };
        assert_eq!(case.set("u.1.a", &keys), DONE);
        assert_removed(&case.remove("u.1.a"));
        is_clear("u.1.a");
        // The hold ends on the copy.
        assert_eq!(case.set("u.2.b", &keys), DONE);
        copy();
        assert_removed(&case.remove("u.2.b"));
        is_clear("u.2.b");
        assert_eq!(case.remove("u.2.b"), KeysRemoved::Nothing);
        // A user changes the copy before the end.
        for (lock_id, clears) in [("u.2.x", false), ("u.2.y", true)] {
            assert_eq!(case.set(lock_id, &keys), DONE);
            copy();
            case.annotate(DISRUPT, Some("mine"));
            match clears {
                false => assert_removed(&case.remove(lock_id)),
                true => {
                    let (requests, shown) = (case.requests(), async || Ok(None));
                    let clearing = clear_keys::<ApiError>(&requests, case.node, shown);
                    RUNTIME.block_on(clearing).expect("it is written");
                }
            }
            assert_eq!(case.annotations()[DISRUPT], "mine", "{clears}");
            case.annotate(DISRUPT, None);
        }
        // Another hold begins and ends there.
        assert_eq!(case.set("u.3.c", &keys), DONE);
        copy();
        keys.annotations
            .insert("kubectl-maint.dev/held-reason".to_owned(), "fan".to_owned());
        keys.cordon = false;
        assert_eq!(case.set("u.4.d", &keys), DONE);
        let node = case.read();
        let notes = &node["metadata"]["annotations"];
        assert_eq!(notes["kubectl-maint.dev/held-reason"], "fan");
        assert_eq!(notes[LOCK_ID], "u.4.d");
        assert_eq!(node["spec"]["unschedulable"], true);
        assert_removed(&case.remove("u.4.d"));
        is_clear("u.4.d");
    });
}

/// What a user, or a renewal of the lock, does to the Node meanwhile.
#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    Cordon,
    Uncordon,
    /// Sets the opt-out to this value, or removes it.
    OptOut(Option<&'static str>),
    EditNote,
    Renew,
}

const MEANWHILE: [Meanwhile; 7] = [
    Meanwhile::Cordon,
    Meanwhile::Uncordon,
    Meanwhile::OptOut(None),
    Meanwhile::OptOut(Some("true")),
    Meanwhile::OptOut(Some("mine")),
    Meanwhile::EditNote,
    Meanwhile::Renew,
];

/// What is set on the Node, and whether the lock set it.
#[derive(Clone, Copy)]
struct Expected {
    cordon: Option<bool>,
    opt_out: Option<(&'static str, bool)>,
}

impl Expected {
    fn after(&mut self, step: Meanwhile) {
        match step {
            // It is there already.
            Meanwhile::Cordon => self.cordon = self.cordon.or(Some(false)),
            Meanwhile::Uncordon => self.cordon = None,
            Meanwhile::OptOut(value) => {
                let same = self.opt_out.filter(|(found, _)| Some(*found) == value);
                self.opt_out = same.or(value.map(|value| (value, false)));
            }
            Meanwhile::EditNote | Meanwhile::Renew => {}
        }
    }
}

impl Case {
    fn send_cordon(&self, cordon: Option<bool>) {
        let patch = json!({"spec": {"unschedulable": cordon}});
        let kind = "application/merge-patch+json";
        self.send("PATCH", "?fieldManager=kubectl-cordon", kind, &patch);
    }

    /// As `maint renew` does.
    fn renew(&self, lock_id: &str) {
        let (uid, requests) = (self.uid(), self.requests());
        let label = map(&[("kubectl-maint.dev/held", "true")]);
        let setting = set_keys::<ApiError>(
            &requests,
            self.lock(&uid, lock_id),
            |on| {
                let mut keys = NodeKeys::opt_outs_of(lock_id, on);
                keys.labels.extend(label.clone());
                keys
            },
            async || Ok(true),
        );
        RUNTIME.block_on(setting).expect("it is written");
    }

    fn step(&self, step: Meanwhile, lock_id: &str) {
        match step {
            Meanwhile::Cordon => self.send_cordon(Some(true)),
            Meanwhile::Uncordon => self.send_cordon(None),
            Meanwhile::OptOut(value) => self.annotate(SCALE_DOWN, value),
            Meanwhile::EditNote => {
                self.annotate("kubectl-maint.dev/held-reason", Some("other"));
            }
            Meanwhile::Renew => self.renew(lock_id),
        }
    }

    fn assert_is(&self, expected: Expected, steps: &[Meanwhile]) {
        let node = self.read();
        let is_cordoned = node["spec"]["unschedulable"] == true;
        assert_eq!(is_cordoned, expected.cordon.is_some(), "cordon: {steps:?}");
        let value = &node["metadata"]["annotations"][SCALE_DOWN];
        let value_expected = expected.opt_out.map(|(value, _)| value);
        assert_eq!(value.as_str(), value_expected, "opt-out: {steps:?}");
    }
}

/// All short orders of what can happen to a Node under a lock.
#[test]
fn a_lock_changes_and_removes_only_what_it_set() {
    on_both("keys-orders", |case| {
        let depth = if case.sandbox.is_some() { 3 } else { 2 };
        let count = MEANWHILE.len().pow(depth);
        let mut keys = keys();
        keys.labels = map(&[("kubectl-maint.dev/held", "true")]);
        keys.cordon = true;
        // Without an earlier apply, the server in memory records no managers.
        assert_eq!(case.set("u.0.z", &NodeKeys::default()), DONE);
        for number in 0..count {
            let digits = (0..depth).map(|place| number / MEANWHILE.len().pow(place));
            let steps: Vec<_> = digits
                .map(|digit| MEANWHILE[digit % MEANWHILE.len()])
                .collect();
            let lock_id = format!("u.{}.a", number + 1);
            assert_eq!(case.set(&lock_id, &keys), DONE);
            let mut expected = Expected {
                cordon: Some(true),
                opt_out: Some(("true", true)),
            };
            for (done, &step) in steps.iter().enumerate() {
                case.step(step, &lock_id);
                expected.after(step);
                case.assert_is(expected, &steps[..=done]);
            }
            match number % 2 {
                0 => assert_removed(&case.remove(&lock_id)),
                _ => {
                    let requests = case.requests();
                    let shown = async || Ok(None);
                    let clearing = clear_keys::<ApiError>(&requests, case.node, shown);
                    RUNTIME.block_on(clearing).expect("it is written");
                }
            }
            expected.cordon = expected.cordon.filter(|is_ours| !is_ours);
            expected.opt_out = expected.opt_out.filter(|(_, is_ours)| !is_ours);
            case.assert_is(expected, &steps);
            let annotations = case.read()["metadata"]["annotations"].to_string();
            assert!(
                !annotations.contains("kubectl-maint.dev/held"),
                "{steps:?}: {annotations}"
            );
            // The next round begins as this one did.
            case.send_cordon(None);
            case.annotate(SCALE_DOWN, None);
        }
    });
}

#[test]
fn a_node_that_is_gone_or_replaced_is_not_created_or_changed() {
    on_both("keys-gone", |case| {
        let uid = case.uid();
        case.send("DELETE", "", "application/json", &json!({}));
        let requests = case.requests();
        let set = |uid: &str| {
            let (lock, keys) = (case.lock(uid, "u.1.a"), keys());
            RUNTIME.block_on(async {
                let setting =
                    set_keys::<ApiError>(&requests, lock, |_| keys.clone(), async || Ok(true));
                setting.await.expect("answers")
            })
        };
        assert_eq!(set(&uid), KeysSet::NodeGone);
        assert_eq!(case.remove("u.1.a"), KeysRemoved::Nothing);
        let another = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": case.node}});
        let request = Request::post("/api/v1/nodes")
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(another.to_string().into_bytes())
            .expect("a request");
        let created: Result<Value, _> = RUNTIME.block_on(case.admin.request(request));
        created.expect("another node");
        assert_eq!(set(&uid), KeysSet::NodeGone);
        assert!(case.annotations().is_empty());
        // Deleted between the read and the apply: the uid in the apply keeps it from creating a Node.
        let uid = case.uid();
        let is_held = async || {
            let request = Request::delete(format!("/api/v1/nodes/{}", case.node)).body(Vec::new());
            let deleted: Result<Value, _> = case.admin.request(request.expect("a request")).await;
            assert!(deleted.is_ok());
            Ok::<_, ApiError>(true)
        };
        let keys = keys();
        let setting = set_keys(
            &requests,
            case.lock(&uid, "u.1.a"),
            |_| keys.clone(),
            is_held,
        );
        let set = RUNTIME.block_on(setting).expect("answers");
        assert_eq!(set, KeysSet::NodeGone);
        let request = Request::get(format!("/api/v1/nodes/{}", case.node)).body(Vec::new());
        let found: Result<Value, _> =
            RUNTIME.block_on(case.admin.request(request.expect("a request")));
        assert!(found.is_err());
    });
}

#[test]
fn without_the_right_to_patch_nodes_the_error_says_so() {
    if is_left_out() {
        return;
    }
    let case = Case::new("keys-right", client(shared().admin_kubeconfig()), None);
    let name = "keys-reader";
    let kubeconfig = shared().user(name, &[]).expect("a user");
    let rule = Rule::new("", &["nodes"], &["get"]);
    shared().grant(name, &[rule]).expect("rights");
    let requests = Requests::new(client(&kubeconfig), Some(Duration::from_secs(30)));
    let (uid, keys) = (case.uid(), keys());
    let setting = set_keys::<ApiError>(
        &requests,
        case.lock(&uid, "u.1.a"),
        |_| keys.clone(),
        async || Ok(true),
    );
    let error = RUNTIME.block_on(setting).expect_err("it is refused");
    assert!(error.is_forbidden(), "{error}");
    let managers = case.read()["metadata"]["managedFields"].to_string();
    assert!(!managers.contains(FIELD_MANAGER));
}

/// Admission webhooks of other people may do this.
#[test]
fn keys_that_the_server_stores_differently_are_an_error_after_few_writes() {
    let node = |labels: &Value| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {
            "name": "n",
            "uid": "u",
            "resourceVersion": "7",
            "labels": labels,
            "annotations": {LOCK_ID: "u.1.a"},
        }})
    };
    let writes = Arc::new(AtomicU32::new(0));
    let requests = |node: Value| {
        let writes = Arc::clone(&writes);
        let service = tower::service_fn(move |request: Request<Body>| {
            writes.fetch_add(
                u32::from(*request.method() != Method::GET),
                Ordering::Relaxed,
            );
            let answer = Response::builder()
                .header("content-type", "application/json")
                .body(Body::from(node.to_string().into_bytes()));
            async { Ok::<_, Infallible>(answer.expect("an answer")) }
        });
        RUNTIME.block_on(async { Requests::new(Client::new(service, "default"), None) })
    };
    let is_altered = |error: ApiError| assert!(matches!(error, ApiError::Altered), "{error}");

    let kept = requests(node(&json!({"kubectl-maint.dev/held": "true"})));
    let shown = async || Ok::<_, ApiError>(None);
    for ending in [None, Some("u.1.a"), Some("u.2.b")] {
        let removing = remove_keys(&kept, "n", ending, shown);
        is_altered(RUNTIME.block_on(removing).expect_err("the label stays"));
        assert!(writes.swap(0, Ordering::Relaxed) <= 8, "{ending:?}");
    }
    let clearing = clear_keys(&kept, "n", shown);
    is_altered(RUNTIME.block_on(clearing).expect_err("the label stays"));
    assert_eq!(writes.swap(0, Ordering::Relaxed), 1);

    let of = KeysOfLock {
        node: "n",
        uid: "u",
        lock_id: "u.1.a",
    };
    let stripped = requests(node(&json!({})));
    let setting = set_keys::<ApiError>(&stripped, of, |_| keys(), async || Ok(true));
    is_altered(RUNTIME.block_on(setting).expect_err("there is no label"));
    assert_eq!(writes.load(Ordering::Relaxed), 1);
}
