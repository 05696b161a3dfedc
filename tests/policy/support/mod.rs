//! A control plane with the policies in deny mode, its users, and the answers of the server.

mod proxy;
#[path = "../../support/tls.rs"]
mod tls;

use crate::schema;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use control_plane::{ControlPlane, is_left_out, shared};
use http::{Method, Request};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

pub(crate) use proxy::{Dates, End, about};

/// The plugin of this checkout.
pub(crate) const PLUGIN: &str = env!("CARGO_BIN_EXE_kubectl-maint");

pub(crate) const LEASES: &str =
    "/apis/coordination.k8s.io/v1/namespaces/kube-node-maintenance/leases";
pub(crate) const NODES: &str = "/api/v1/nodes";
pub(crate) const BINDINGS: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

pub(crate) const USERS: &str = "kubectl-maint:users";
pub(crate) const HOLDERS: &str = "kubectl-maint:holders";
pub(crate) const ADMINISTRATORS: &str = "kubectl-maint:administrators";

pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// Command lines of a holder, who may lock, hold and change nodes. Later lines end every lock.
pub(crate) const TOUR: [&str; 16] = [
    "acquire NODE -m kernel",
    "acquire NODE --reentry",
    "renew NODE",
    "renew NODE --duration +1m",
    "release NODE",
    "acquire NODE --duration 30m",
    "hold NODE -m disk --expect-until 2d",
    "unhold NODE",
    "acquire NODE --opt-outs=none",
    "release NODE",
    "hold NODE -m disk --cordon",
    "unhold NODE",
    "acquire NODE --cordon --opt-outs=auto",
    "release NODE",
    "with NODE --opt-outs=none -- true",
    "with NODE -m test -- true",
];

/// Part of the path of the writes that `doctor` expects to be refused.
const PROBE: &str = "dryRun=All&fieldManager=kubectl-maint-install";

/// Policies take effect within a second; a slow machine gets more.
const LIMIT: Duration = Duration::from_secs(60);

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
});

/// A refused request.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) code: u16,
    pub(crate) message: String,
}

/// The answer to a request.
pub(crate) type Answer = Result<Value, Refused>;

/// A user with a kubeconfig.
pub(crate) struct Person {
    /// The name of the API user.
    pub(crate) name: String,
    pub(crate) kubeconfig: PathBuf,
    client: Client,
}

impl Person {
    fn new(name: &str, kubeconfig: &Path) -> Self {
        let client = RUNTIME.block_on(async {
            let file = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
            let options = KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(file, &options).await;
            let mut config = config.expect("a config");
            config.default_retry = false;
            Client::try_from(config).expect("a client")
        });
        Self {
            name: name.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            client,
        }
    }

    /// The annotation that names this user, for an acquisition with this count.
    pub(crate) fn signature(&self, count: i64) -> Value {
        json!({"kubectl-maint.dev/user": format!("{count}-{}", self.name)})
    }

    /// A patch with this spec and the annotation of [`Self::signature`].
    pub(crate) fn signed(&self, count: i64, spec: &Value) -> Value {
        json!({"metadata": {"annotations": self.signature(count)}, "spec": spec})
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, "application/json", &Value::Null)
            .expect("it is there")
    }

    pub(crate) fn post(&self, path: &str, object: &Value) -> Answer {
        self.send(Method::POST, path, "application/json", object)
    }

    pub(crate) fn put(&self, path: &str, object: &Value) -> Answer {
        self.send(Method::PUT, path, "application/json", object)
    }

    pub(crate) fn patch(&self, path: &str, patch: &Value) -> Answer {
        self.send(Method::PATCH, path, MERGE, patch)
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, "application/json", &json!({}))
    }

    pub(crate) fn send(&self, method: Method, path: &str, kind: &str, body: &Value) -> Answer {
        let body = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, kind)
            .body(body)
            .expect("a request");
        match RUNTIME.block_on(self.client.request(request)) {
            Ok(answer) => Ok(answer),
            Err(kube::Error::Api(status)) => Err(Refused {
                code: status.code,
                message: status.message.clone(),
            }),
            Err(error) => panic!("{path}: {error}"),
        }
    }

    /// A header of the answer to a GET request.
    pub(crate) fn header(&self, path: &str, name: &str) -> String {
        let request = Request::get(path).body(kube::client::Body::empty());
        let request = request.expect("a request");
        let answer = RUNTIME
            .block_on(self.client.send(request))
            .expect("an answer");
        let value = answer.headers().get(name).expect(name);
        value.to_str().expect("text").to_owned()
    }

    /// Runs the plugin.
    pub(crate) fn maint(&self, arguments: &[&str]) -> Run {
        let run = self.runs(Path::new(PLUGIN), arguments);
        let words: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        schema::check(&words, &run.stdout);
        run
    }

    /// Runs the plugin at this path, which may belong to another release.
    pub(crate) fn runs(&self, plugin: &Path, arguments: &[&str]) -> Run {
        run(Command::new(plugin)
            .args(arguments)
            .env_clear()
            .env("KUBECONFIG", &self.kubeconfig))
    }

    /// Runs the plugin, which must succeed without a warning.
    #[track_caller]
    pub(crate) fn succeeds(&self, arguments: &[&str]) -> Run {
        let run = self.maint(arguments);
        assert_eq!(run.code, 0, "{arguments:?}: {run:?}");
        run
    }
}

/// The result of a run of the plugin.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl Run {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        Self {
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            code: output.status.code().expect("it was not killed"),
        }
    }
}

pub(crate) fn run(command: &mut Command) -> Run {
    let output = command.stdin(Stdio::null()).output();
    Run::of(output.expect("the program is there"))
}

/// The path of a file in deploy/.
pub(crate) fn manifest(name: &str) -> String {
    format!("{}/deploy/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The shared control plane, with everything in deploy/ applied and the policies in deny mode. `None` if tests run
/// without a control plane.
pub(crate) fn denying() -> Option<&'static ControlPlane> {
    static DENYING: LazyLock<()> = LazyLock::new(|| {
        let plane = shared();
        let directory = manifest("");
        let applied = plane.kubectl(&["apply", "-k", &directory]);
        applied.expect("the manifests are valid");
        set_mode(&admin(plane), Mode::Deny);
    });
    if is_left_out() {
        return None;
    }
    LazyLock::force(&DENYING);
    Some(shared())
}

/// A mode of the policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Audit,
    Deny,
}

fn set_mode(admin: &Person, mode: Mode) {
    let actions = match mode {
        Mode::Audit => json!(["Audit"]),
        Mode::Deny => json!(["Deny", "Audit"]),
    };
    for name in ["kubectl-maint-leases", "kubectl-maint-nodes"] {
        let patch = json!({"spec": {"validationActions": actions}});
        let patched = admin.patch(&format!("{BINDINGS}/{name}"), &patch);
        patched.expect("a binding");
    }
    await_denial(admin, mode == Mode::Deny);
}

/// A control plane with an audit log, whose policies change their mode. Tests use it one at a time.
pub(crate) struct Audited {
    pub(crate) plane: ControlPlane,
    pub(crate) admin: Person,
}

impl Audited {
    /// `None` if tests run without a control plane.
    pub(crate) fn in_turn() -> Option<MutexGuard<'static, Self>> {
        static AUDITED: LazyLock<Mutex<Audited>> = LazyLock::new(|| Mutex::new(Audited::start()));
        if is_left_out() {
            return None;
        }
        Some(AUDITED.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn start() -> Self {
        // The audit log is part of the server's own log.
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
            "rules": [
                {"level": "Metadata", "verbs": ["create", "update", "patch", "delete"], "resources": [
                    {"group": "coordination.k8s.io", "resources": ["leases"]},
                    {"group": "", "resources": ["nodes", "nodes/status"]},
                ]},
                {"level": "None"},
            ],
        });
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("audit-policy.json");
        std::fs::write(&file, policy.to_string()).expect("it is written");
        let plane = ControlPlane::builder()
            .api_server_flag(&format!("--audit-policy-file={}", file.display()))
            .api_server_flag("--audit-log-path=-")
            .start();
        let plane = plane.expect("a control plane");
        let applied = plane.kubectl(&["apply", "-k", &manifest("")]);
        applied.expect("the manifests are valid");
        let admin = admin(&plane);
        Self { plane, admin }
    }

    /// Sets the mode, and waits until it has taken effect.
    pub(crate) fn set_mode(&self, mode: Mode) {
        set_mode(&self.admin, mode);
    }

    /// The writes that broke a rule, by users whose names begin with `of`. Writes of `doctor` that test the policies
    /// are left out.
    pub(crate) fn failures(&self, of: &str) -> Vec<Value> {
        let is_failure = |event: &Value| {
            let uri = event["requestURI"].as_str().expect("a path");
            event.to_string().contains("validation_failure") && !uri.contains(PROBE)
        };
        self.events(of).into_iter().filter(is_failure).collect()
    }

    /// The logged writes by users whose names begin with `of`.
    pub(crate) fn events(&self, of: &str) -> Vec<Value> {
        let log = std::fs::read_to_string(self.plane.api_server().log()).expect("a log");
        let is_of = |event: &Value| {
            let user = event["user"]["username"].as_str();
            user.is_some_and(|user| user.starts_with(of))
        };
        let events = log
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        events.filter(is_of).collect()
    }
}

/// Waits until both policies refuse what breaks a rule (`wanted`), or until neither does.
pub(crate) fn await_denial(admin: &Person, wanted: bool) {
    let lease = json!({
        "metadata": {"name": "probe"},
        "spec": {"holderIdentity": "probe", "renewTime": at(3600), "leaseDurationSeconds": 1},
    });
    let node = json!({"metadata": {"name": "probe"}});
    match admin.post(NODES, &node) {
        Ok(_) => {}
        Err(refused) => assert_eq!(refused.code, 409, "{refused:?}"),
    }
    let end = Instant::now() + LIMIT;
    loop {
        let refuses_lease = admin.post(&format!("{LEASES}?dryRun=All"), &lease).is_err();
        let label = json!({"metadata": {"labels": {"kubectl-maint.dev/held": "probe"}}});
        let path = format!("{NODES}/probe?dryRun=All");
        let refuses_node = admin.patch(&path, &label).is_err();
        if refuses_lease == wanted && refuses_node == wanted {
            return;
        }
        assert!(Instant::now() < end, "{refuses_lease} {refuses_node}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The administrator, who has all rights.
pub(crate) fn admin(plane: &ControlPlane) -> Person {
    Person::new("admin", plane.admin_kubeconfig())
}

/// A user in these groups.
pub(crate) fn person(plane: &ControlPlane, name: &str, groups: &[&str]) -> Person {
    Person::new(name, &plane.user(name, groups).expect("a kubeconfig"))
}

/// The time this many seconds from now, in the format of a Lease.
pub(crate) fn at(seconds: i64) -> String {
    let time = Utc::now() + TimeDelta::seconds(seconds);
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// The time this many seconds after `time`.
pub(crate) fn after(time: &Value, seconds: i64) -> String {
    let time = DateTime::parse_from_rfc3339(time.as_str().expect("a time")).expect("a time");
    let time = time.to_utc() + TimeDelta::seconds(seconds);
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// Waits until the condition holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Asserts that the rule with this code refused the request.
#[track_caller]
pub(crate) fn refused_by(code: &str, answer: &Answer, what: &str) {
    match answer {
        Ok(_) => panic!("{what}: admitted"),
        Err(refused) => {
            let rule = format!("denied request: {code}: ");
            assert_eq!(refused.code, 403, "{what}: {refused:?}");
            assert!(refused.message.contains(&rule), "{what}: {refused:?}");
        }
    }
}

#[track_caller]
pub(crate) fn admitted(answer: Answer, what: &str) -> Value {
    answer.unwrap_or_else(|refused| panic!("{what}: {refused:?}"))
}

/// Creates a policy that is not ours, with one match rule and one validation.
#[track_caller]
pub(crate) fn policy_of_somebody_else(
    admin: &Person,
    name: &str,
    rule: &Value,
    validation: &Value,
) {
    let policy = json!({
        "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [validation]},
    });
    let policies = BINDINGS.replace("policybindings", "policies");
    admitted(admin.post(&policies, &policy), "a policy");
    let binding = json!({
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    });
    admitted(admin.post(BINDINGS, &binding), "a binding");
}
