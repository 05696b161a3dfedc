//! In which order a lock writes on its Node, on its Machine and as its medik8s Lease, in memory: what is recorded, what follows
//! a write that fails, and what an earlier lock left.

use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use kube::Client;
use kube::client::Body;
use maintenance_lease::{Acquire, Change, Done, Hold, Maintenance, NodeLease, Requests};
use other_tools::{
    ConnectFailure, KeysRemoved, LeftBehind, ManagementCluster, ManagementClusters, NodeUpdate,
    OptOuts, ProtectionResult, ProtectionStep, ProtectionWriter, WriteError,
};
use sandbox::{Resource, Sandbox};
use serde_json::{Value, json};
use tower::Service as _;

const NODE: &str = "worker-1";
const MACHINES: &str = "cluster.x-k8s.io/v1beta2";
const MACHINE_RECORD: &str = "kubectl-maint.dev/held-machine";
const LEASE_RECORD: &str = "kubectl-maint.dev/held-medik8s-lease";
const HOOK: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io/kubectl-maint";

/// The writes that reached a server or were refused before it, such as `PATCH nodes/worker-1`.
#[derive(Clone, Default)]
struct Wire {
    writes: Arc<Mutex<Vec<String>>>,
    /// The writes that are answered with an error, and its code.
    refused: Arc<Mutex<Option<(&'static str, u16)>>>,
}

impl Wire {
    fn client(&self, sandbox: &Sandbox) -> Client {
        let (wire, service) = (self.clone(), sandbox.service());
        let service = tower::service_fn(move |request: Request<Body>| {
            let refused = wire.note(&request);
            let mut service = service.clone();
            async move {
                match refused {
                    Some(code) => Ok::<_, Infallible>(error(code)),
                    None => service.call(request).await,
                }
            }
        });
        Client::new(service, "default")
    }

    /// Notes a write, and returns the code of the error that it gets.
    fn note(&self, request: &Request<Body>) -> Option<u16> {
        let path = request.uri().path();
        let is_lock = path.contains("kube-node-maintenance");
        if request.method() == Method::GET || is_lock {
            return None;
        }
        let mut parts = path.rsplit('/');
        let (name, kind) = (parts.next()?, parts.next()?);
        let object = match *request.method() {
            Method::POST => name.to_owned(),
            _ => format!("{kind}/{name}"),
        };
        let query = request.uri().query().unwrap_or_default();
        let is_dry_run = query.contains("dryRun=All");
        let trial = if is_dry_run { "try " } else { "" };
        let write = format!("{trial}{} {object}", request.method());
        let refused = self.refused.lock().expect("no panic");
        let code = refused.filter(|(refused, _)| write == *refused);
        self.writes.lock().expect("no panic").push(write);
        code.map(|(_, code)| code)
    }

    fn refuse(&self, write: &'static str, code: u16) {
        *self.refused.lock().expect("no panic") = Some((write, code));
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.writes.lock().expect("no panic"))
    }
}

fn error(code: u16) -> Response<sandbox::AnswerBody> {
    let reason = if code == 403 {
        "Forbidden"
    } else {
        "InternalError"
    };
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": "no",
    });
    Response::builder()
        .status(code)
        .header("content-type", "application/json")
        .body(Full::from(status.to_string()).boxed_unsync())
        .expect("an answer")
}

/// A management cluster in the context `mgmt`.
struct Management(ManagementCluster);

impl ManagementClusters for Management {
    fn given(&self) -> Option<&str> {
        Some(&self.0.context)
    }

    fn server_of(&self, context: &str) -> Result<String, ConnectFailure> {
        assert_eq!(context, self.0.context);
        Ok(self.0.server.clone())
    }

    async fn open(&self, context: &str) -> Result<ManagementCluster, ConnectFailure> {
        assert_eq!(context, self.0.context);
        Ok(self.0.clone())
    }

    fn note_silence(&self, context: &str) {
        panic!("{context} answers")
    }
}

/// A node with a Machine in another cluster.
struct World {
    workload: Sandbox,
    machines: Sandbox,
    wire: Wire,
    locks: Maintenance,
    management: Management,
    steps: RefCell<Vec<String>>,
}

impl World {
    fn new() -> Self {
        let workload = Sandbox::new();
        workload.add_node(NODE);
        workload.put(json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "medik8s-leases"},
        }));
        let machine = Resource::custom("cluster.x-k8s.io", "v1beta2", "Machine", "machines", true);
        let machines = Sandbox::builder().resource(machine).build();
        let wire = Wire::default();
        let client = wire.client(&workload);
        let locks = Maintenance::new(client, "alice@bastion").expect("an identity");
        let limit = Some(Duration::from_secs(30));
        let management = Management(ManagementCluster {
            context: "mgmt".to_owned(),
            server: "https://mgmt".to_owned(),
            requests: Requests::new(wire.client(&machines), limit),
        });
        let world = Self {
            workload,
            machines,
            wire,
            locks,
            management,
            steps: RefCell::default(),
        };
        world.give_machine("m-1");
        world
    }

    /// Makes this the Machine of the node.
    fn give_machine(&self, name: &str) {
        self.machines.put(json!({
            "apiVersion": MACHINES, "kind": "Machine",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {},
            "status": {"nodeRef": {"name": NODE}},
        }));
        let mut node = self.node();
        let annotations = &mut node["metadata"]["annotations"];
        annotations["cluster.x-k8s.io/machine"] = json!(name);
        annotations["cluster.x-k8s.io/cluster-namespace"] = json!("default");
        self.workload.put(node);
    }

    fn node(&self) -> Value {
        let node = self.workload.get("v1", "Node", "", NODE);
        node.expect("the Node")
    }

    fn has_record(&self, key: &str) -> bool {
        self.node()["metadata"]["annotations"][key].is_string()
    }

    /// The name in the record of the Machine.
    fn recorded(&self) -> Value {
        let node = self.node();
        let record = node["metadata"]["annotations"][MACHINE_RECORD].as_str();
        let record: Value = serde_json::from_str(record.expect("a record")).expect("JSON");
        record["name"].clone()
    }

    fn is_opted_out(&self, machine: &str) -> bool {
        let machine = self.machines.get(MACHINES, "Machine", "default", machine);
        machine.expect("a Machine")["metadata"]["annotations"][HOOK].is_string()
    }

    fn writer(&self) -> ProtectionWriter<'_, Management> {
        ProtectionWriter::new(&self.locks, &self.management)
    }

    async fn hold(&self) -> NodeLease {
        let held = self.locks.hold(NODE, &Hold::new("disk")).await;
        // The namespace of the locks may have been created.
        self.wire.take();
        held.expect("a hold").lease.expect("its Lease")
    }

    async fn protect(&self, lease: &NodeLease) -> ProtectionResult {
        let opt_outs: OptOuts = "cluster-api,medik8s".parse().expect("opt-outs");
        let report = |step| self.steps.borrow_mut().push(name_of(&step));
        let writer = self.writer();
        writer.protect(lease, true, &opt_outs, &report).await
    }

    async fn unprotect(&self, ending: Option<&NodeLease>) -> KeysRemoved {
        let report = |left| self.steps.borrow_mut().push(name_of_left(&left).to_owned());
        let removed = self.writer().unprotect(NODE, ending, &report).await;
        removed.expect("it is removed")
    }

    async fn update_node(&self, change: &Change) -> NodeUpdate {
        let report = |left| self.steps.borrow_mut().push(name_of_left(&left).to_owned());
        self.writer().update_node(change, &report).await
    }

    /// What was reported, and what was written.
    fn take(&self) -> (Vec<String>, Vec<String>) {
        (self.steps.take(), self.wire.take())
    }
}

fn name_of(step: &ProtectionStep) -> String {
    match step {
        ProtectionStep::Earlier(left) => format!("earlier: {}", name_of_left(left)),
        ProtectionStep::Labeled {
            keys,
            stays_cordoned,
            conflicts,
        } => {
            assert!(
                keys.cordon && !stays_cordoned && conflicts.is_empty(),
                "{step:?}"
            );
            "labeled".to_owned()
        }
        ProtectionStep::NotLabeled(_) => "not labeled".to_owned(),
        ProtectionStep::MachineFinding(_) => "finding".to_owned(),
        ProtectionStep::MachineOptedOut { of, context } => format!("{} in {context}", of.name),
        ProtectionStep::Medik8sLeaseHeld => "medik8s Lease".to_owned(),
        ProtectionStep::NotTried { tool, error } => match error {
            WriteError::EarlierMachine(record) => format!("{tool} not tried: {}", record.name),
            _ => format!("{tool} not tried"),
        },
        ProtectionStep::NotSet { tool, error } => match error.is_certain() {
            true => format!("{tool} refused"),
            false => format!("{tool} unknown"),
        },
    }
}

fn name_of_left(left: &LeftBehind) -> &str {
    match left {
        LeftBehind::UnreadableRecord => "unreadable record",
        LeftBehind::OnMachineOfAnother(_) => "Machine of another node",
        LeftBehind::OnMachine { record, .. } => &record.name,
        LeftBehind::Medik8sLease(_) => "medik8s Lease",
    }
}

const SET: ProtectionResult = ProtectionResult {
    is_labeled: true,
    is_opted_out: true,
};

#[tokio::test]
async fn the_node_records_a_machine_and_a_lease_before_they_are_written_and_until_they_are_removed()
{
    let world = World::new();
    let lease = world.hold().await;
    assert_eq!(world.protect(&lease).await, SET);
    let steps = ["labeled", "m-1 in mgmt", "medik8s Lease"];
    let writes = ["PATCH nodes/worker-1", "PATCH machines/m-1", "POST leases"];
    assert_eq!(
        world.take(),
        (
            steps.map(String::from).into(),
            writes.map(String::from).into()
        )
    );
    assert!(world.is_opted_out("m-1"));
    // The same again changes nothing.
    assert_eq!(world.protect(&lease).await, SET);
    assert_eq!(world.wire.take(), ["PATCH machines/m-1"]);
    world.steps.take();

    let removed = world.unprotect(Some(&lease)).await;
    assert!(matches!(removed, KeysRemoved::Done(keys) if keys.cordon));
    let writes = [
        "try PATCH nodes/worker-1",
        "PATCH machines/m-1",
        "DELETE leases/node-worker-1",
        "PATCH nodes/worker-1",
    ];
    assert_eq!(world.take(), (Vec::new(), writes.map(String::from).into()));
    assert!(!world.is_opted_out("m-1") && !world.has_record(MACHINE_RECORD));
}

#[tokio::test]
async fn without_the_record_nothing_is_written_on_other_objects() {
    for code in [403, 500] {
        let world = World::new();
        let lease = world.hold().await;
        world.wire.refuse("PATCH nodes/worker-1", code);
        let result = world.protect(&lease).await;
        assert!(!result.is_labeled && !result.is_opted_out);
        let (steps, writes) = world.take();
        let not_tried = ["not labeled", "cluster-api not tried", "medik8s not tried"];
        assert_eq!(steps, not_tried);
        assert!(
            writes.iter().all(|write| write == "PATCH nodes/worker-1"),
            "{writes:?}"
        );
        assert!(!world.is_opted_out("m-1"));
    }
}

#[tokio::test]
async fn only_the_record_of_what_was_certainly_refused_is_removed_again() {
    let machine = (
        "PATCH machines/m-1",
        "cluster-api",
        [MACHINE_RECORD, LEASE_RECORD],
    );
    let medik8s = ("POST leases", "medik8s", [LEASE_RECORD, MACHINE_RECORD]);
    for (write, tool, [record, other]) in [machine, medik8s] {
        for (code, outcome) in [(403, "refused"), (500, "unknown")] {
            let world = World::new();
            let lease = world.hold().await;
            world.wire.refuse(write, code);
            let result = world.protect(&lease).await;
            assert!(result.is_labeled && !result.is_opted_out);
            let (steps, writes) = world.take();
            assert!(steps.contains(&format!("{tool} {outcome}")), "{steps:?}");
            let is_last = writes
                .last()
                .is_some_and(|last| last == "PATCH nodes/worker-1");
            assert_eq!(is_last, code == 403, "{writes:?}");
            assert_eq!(world.has_record(record), code == 500, "{tool} {code}");
            assert!(world.has_record(other), "{tool} {code}");
        }
    }
}

/// An earlier write of the same lock may have set it.
#[tokio::test]
async fn a_record_that_was_there_before_stays_if_a_later_write_is_refused() {
    let world = World::new();
    let lease = world.hold().await;
    assert_eq!(world.protect(&lease).await, SET);
    world.wire.refuse("PATCH machines/m-1", 403);
    assert!(!world.protect(&lease).await.is_opted_out);
    assert!(world.has_record(MACHINE_RECORD) && world.is_opted_out("m-1"));
}

#[tokio::test]
async fn an_earlier_machine_is_cleared_before_another_one_takes_its_record() {
    let world = World::new();
    let lease = world.hold().await;
    assert_eq!(world.protect(&lease).await, SET);
    world.give_machine("m-2");
    world.take();

    world.wire.refuse("PATCH machines/m-1", 403);
    assert!(!world.protect(&lease).await.is_opted_out);
    let (steps, _) = world.take();
    let expected = [
        "earlier: m-1",
        "labeled",
        "cluster-api not tried: m-1",
        "medik8s Lease",
    ];
    assert_eq!(steps, expected);
    assert_eq!(world.recorded(), "m-1");
    assert!(world.is_opted_out("m-1") && !world.is_opted_out("m-2"));

    world.wire.refuse("", 403);
    assert_eq!(world.protect(&lease).await, SET);
    let (steps, writes) = world.take();
    assert_eq!(steps, ["labeled", "m-2 in mgmt", "medik8s Lease"]);
    let expected = [
        "PATCH machines/m-1",
        "PATCH nodes/worker-1",
        "PATCH machines/m-2",
    ];
    assert_eq!(writes, expected);
    assert_eq!(world.recorded(), "m-2");
    assert!(!world.is_opted_out("m-1") && world.is_opted_out("m-2"));
}

#[tokio::test]
async fn the_next_lock_removes_what_an_earlier_one_left_and_looks_only_if_there_may_be_something() {
    let world = World::new();
    let free = world.locks.try_acquire(NODE, &Acquire::new()).await;
    let free = free.expect("a lock");
    world.wire.take();
    assert!(matches!(world.update_node(&free).await, NodeUpdate::Done));
    world.locks.release_acquired(&free).await.expect("it ends");
    assert!(world.wire.take().is_empty());

    let lease = world.hold().await;
    assert_eq!(world.protect(&lease).await, SET);
    // The end of the hold did not get that far.
    world.locks.unhold(NODE).await.expect("it ends");
    let next = world.locks.try_acquire(NODE, &Acquire::new()).await;
    let next = next.expect("a lock");
    assert_eq!(next.done, Done::Acquired);
    let update = world.update_node(&next).await;
    assert!(
        matches!(&update, NodeUpdate::EarlierRemoved(keys) if keys.cordon),
        "{update:?}"
    );
    assert!(!world.is_opted_out("m-1") && !world.has_record(LEASE_RECORD));
    assert_eq!(world.node()["spec"]["unschedulable"], Value::Null);
}
