//! What to run next about a stuck object, the safest first.

use maintenance_lease::protocol::{Now, Span};
use pod_safety::constants::POD_GC;
use pod_safety::node_health::Health;
use pod_safety::stuck::{Orphan, Stuck, StuckVolume};
use pod_safety::why::{Diagnosis, Eviction, Reason, State};
use schemars::JsonSchema;
use serde::Serialize;

use crate::object::{Kind, Object};
use crate::text::for_shell;
use crate::words::hint_command::{NO_REASON, Program};

/// A command to run next.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(rename = "NextCommand")]
pub(crate) struct Step {
    #[serde(skip)]
    risk: CommandRisk,
    pub(crate) command: String,
    // A comment in a shell. zsh runs a pasted comment as a command, so it must not have an effect there.
    /// What it is for.
    pub(crate) about: &'static str,
}

/// What a command risks, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CommandRisk {
    /// It only waits.
    Wait,
    /// It only reads.
    Look,
    /// It starts to repair the node.
    Repair,
    /// It powers a node off.
    Fence,
    /// Guarantees may be lost.
    Force,
}

/// Commands for the same cluster.
struct Commands<'a> {
    program: &'a Program,
    subject: &'a Object,
    /// The subject was force-deleted already.
    is_forced: bool,
    now: Now,
    steps: Vec<Step>,
}

/// What to run next, each command once.
pub(crate) fn steps(subject: &Object, found: &Diagnosis, program: &Program, now: Now) -> Vec<Step> {
    let mut commands = Commands {
        program,
        subject,
        is_forced: found.forced,
        now,
        steps: Vec::new(),
    };
    let is_unreachable = |reason: &Reason| {
        let Reason::Node { health, .. } = reason else {
            return false;
        };
        matches!(health, Health::Unreachable { .. })
    };
    let on_unreachable_node = found.reasons.iter().any(is_unreachable);
    for reason in &found.reasons {
        commands.of(reason, found.state, on_unreachable_node);
    }
    if found.reasons.is_empty() && found.state == State::Pending {
        commands.describe();
    }
    safest_first(commands.steps)
}

/// What to run next about the first of the pods that are stuck, or wait for one.
pub(crate) fn pod_step(stuck: &Stuck, program: &Program) -> Option<Step> {
    let pod = stuck.pods.iter().chain(&stuck.waiting).next()?;
    let (namespace, name) = (for_shell(&pod.namespace), for_shell(&pod.name));
    Some(Step {
        risk: CommandRisk::Look,
        command: program.run(format_args!("why pod/{name} -n {namespace}")),
        about: "explain one of the pods",
    })
}

/// What to run next about attachments that nobody needs.
pub(crate) fn volume_steps(volumes: &[StuckVolume], program: &Program) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut add = |risk, command, about| {
        steps.push(Step {
            risk,
            command,
            about,
        });
    };
    let is_alike = |a: &StuckVolume, b: &StuckVolume| {
        (&a.attachment.node, a.orphan) == (&b.attachment.node, b.orphan)
    };
    for alike in volumes.chunk_by(is_alike) {
        let names = alike.iter().map(|one| for_shell(&one.attachment.name));
        let names = names.collect::<Vec<_>>().join(" ");
        let StuckVolume {
            attachment,
            health,
            orphan,
        } = &alike[0];
        if *orphan != Orphan::Detaching {
            let command = program.kubectl(format_args!(
                "wait --for=delete volumeattachment {names} --timeout=10m"
            ));
            let about = "by default, Kubernetes detaches volumes of a dead node after 6m";
            add(CommandRisk::Wait, command, about);
        }
        let command = program.kubectl(format_args!("describe volumeattachment {names}"));
        add(
            CommandRisk::Look,
            command,
            "read why the driver cannot detach it",
        );
        match (orphan, health) {
            (Orphan::NodeGone, _) => {
                let command = program.kubectl(format_args!("delete volumeattachment {names}"));
                let about = "only if the machine is off: tells the driver to detach it";
                add(CommandRisk::Force, command, about);
            }
            (Orphan::Unused, Health::Unreachable { .. }) => {
                let command = program.run(format_args!("fence {} -- HOOK", attachment.node));
                add(
                    CommandRisk::Fence,
                    command,
                    "power it off, and its volumes are detached at once",
                );
            }
            _ => {}
        }
    }
    safest_first(steps)
}

/// A timeout that is longer than the `expected` time by more than half a minute, as kubectl accepts it.
fn timeout(expected: Span) -> String {
    let seconds = expected.as_micros().max(0) / 1_000_000 + 40;
    match seconds {
        ..=120 => format!("{seconds}s"),
        _ => format!("{}m", seconds.div_euclid(60) + 1),
    }
}

/// Each command once.
fn safest_first(mut steps: Vec<Step>) -> Vec<Step> {
    steps.sort_by_key(|step| step.risk);
    let mut once: Vec<Step> = Vec::new();
    for step in steps {
        if !once.iter().any(|known| known.command == step.command) {
            once.push(step);
        }
    }
    once
}

impl Commands<'_> {
    fn add(&mut self, risk: CommandRisk, command: String, about: &'static str) {
        self.steps.push(Step {
            risk,
            command,
            about,
        });
    }

    /// The namespace flag of the subject, after a space.
    fn in_namespace(&self) -> String {
        match self.subject.kind {
            Kind::Namespace => format!(" -n {}", for_shell(&self.subject.name)),
            _ => format!(" -n {}", for_shell(&self.subject.namespace)),
        }
    }

    /// A command of kubectl that reads in the namespace.
    fn kubectl(&mut self, line: &str, about: &'static str) {
        self.kubectl_outside(&format!("{line}{}", self.in_namespace()), about);
    }

    /// The same for what is in no namespace.
    fn kubectl_outside(&mut self, line: &str, about: &'static str) {
        let command = self.program.kubectl(line);
        self.add(CommandRisk::Look, command, about);
    }

    fn describe_node(&mut self, node: &str) {
        let command = self.program.run(format_args!("describe {node}"));
        let about = "show the state of the node, and who works on it";
        self.add(CommandRisk::Look, command, about);
    }

    /// This command for another object of the namespace.
    fn why(&mut self, object: &str) {
        let command = self.program.run(format_args!(
            "why {}{}",
            for_shell(object),
            self.in_namespace()
        ));
        self.add(CommandRisk::Look, command, "explain this object too");
    }

    fn describe(&mut self) {
        let Object { kind, name, .. } = self.subject;
        let line = format!("describe {} {}", kind.word(), for_shell(name));
        self.kubectl(&line, "read its events");
    }

    /// kubectl stops waiting after 30 s, unless it has a timeout. `expected` is the time until it is gone.
    fn wait(&mut self, expected: Span) {
        let line = format!(
            "wait --for=delete {} --timeout={}",
            for_shell(&self.subject.shown()),
            timeout(expected)
        );
        let command = self
            .program
            .kubectl(format_args!("{line}{}", self.in_namespace()));
        self.add(CommandRisk::Wait, command, "wait until it is gone");
    }

    fn node(&mut self, node: &str, health: &Health, state: State) {
        let program = self.program;
        match health {
            Health::Ready => {}
            Health::NotReady { .. } | Health::KubeletAlive { .. } => {
                self.describe_node(node);
            }
            Health::Unreachable { .. } => {
                self.describe_node(node);
                let command = program.run(format_args!("fence {node} -- HOOK"));
                self.add(
                    CommandRisk::Fence,
                    command,
                    "power it off, then let its pods run elsewhere",
                );
                if matches!(state, State::Terminating { .. }) && !self.is_forced {
                    let command = program.run(format_args!(
                        "force-delete {}{}",
                        for_shell(&self.subject.shown()),
                        self.in_namespace()
                    ));
                    let about = "if you cannot fence it, check the risks: this deletes nothing yet";
                    self.add(CommandRisk::Force, command, about);
                }
            }
            Health::Restarted { .. } => {
                let command = program.run(format_args!("unfence {node}"));
                self.add(CommandRisk::Repair, command, "return the node to service");
            }
            Health::OutOfService { .. } | Health::Gone => {
                if !matches!(state, State::Pending | State::Running) {
                    self.wait(POD_GC);
                }
            }
        }
    }

    fn of(&mut self, reason: &Reason, state: State, on_unreachable_node: bool) {
        match reason {
            Reason::Grace { until, .. } if !on_unreachable_node => {
                self.wait(*until - self.now.earliest);
            }
            // The kubelet is unreachable, so waiting does not help.
            Reason::Grace { .. } => {}
            Reason::Node { name, health } => self.node(name, health, state),
            Reason::Containers { node, .. }
            | Reason::Stopping { node, .. }
            | Reason::Unmount { node, .. } => {
                self.describe();
                let command = self
                    .program
                    .run(format_args!("acquire {node} -m {NO_REASON}"));
                self.add(
                    CommandRisk::Repair,
                    command,
                    "lock the node, then drain and restart it",
                );
            }
            Reason::Unconfirmed { .. }
            | Reason::Unschedulable { .. }
            | Reason::Gated { .. }
            | Reason::NoScheduler { .. }
            | Reason::Container { .. }
            | Reason::Event { .. } => self.describe(),
            Reason::Collected => self.wait(POD_GC),
            Reason::Finalizer(_) => {
                let about = "see who added it, and check that this controller runs";
                let Object { kind, name, .. } = self.subject;
                let line = format!(
                    "get {} {} -o yaml --show-managed-fields",
                    kind.word(),
                    for_shell(name)
                );
                self.kubectl(&line, about);
            }
            Reason::VolumeAffinity { volume, nodes, .. } => {
                let line = format!("describe pv {}", for_shell(volume));
                self.kubectl_outside(&line, "see its node affinity");
                if let Some((node, _)) = nodes.first() {
                    self.describe_node(node);
                }
            }
            Reason::MultiAttach {
                node, health, pods, ..
            } => {
                match pods.first() {
                    Some(pod) => self.why(&format!("pod/{pod}")),
                    None => {
                        self.kubectl_outside("get volumeattachments", "see who has the volume");
                    }
                }
                if let Some(health) = health {
                    self.node(node, health, State::Pending);
                }
            }
            Reason::AttachFailed { .. } => self.describe(),
            Reason::ClaimMissing { .. } => self.kubectl("get pvc", "see which claims exist"),
            Reason::ClaimUnbound { claim } | Reason::ClaimEnding { claim } => {
                self.why(&format!("pvc/{claim}"));
            }
            Reason::VolumeMissing { .. } => {
                self.kubectl_outside("get pv", "see which volumes exist");
            }
            Reason::Eviction(Eviction::Budget { name, .. }) => {
                let line = format!("describe pdb {}", for_shell(name));
                self.kubectl(&line, "see the numbers and events of the budget");
            }
            Reason::Eviction(_) => self.kubectl("get pdb", "see the budgets"),
            Reason::UsedBy { pods } => {
                for user in pods.iter().take(3) {
                    let pod = format!("pod/{}", user.name);
                    if user.finished {
                        let line = format!("delete {}{}", for_shell(&pod), self.in_namespace());
                        let command = self.program.kubectl(line);
                        self.add(
                            CommandRisk::Repair,
                            command,
                            "it has finished, and this frees the claim",
                        );
                    } else {
                        self.why(&pod);
                    }
                }
            }
            Reason::FirstConsumer { pods } | Reason::Left { names: pods, .. }
                if !pods.is_empty() =>
            {
                let kind = match reason {
                    Reason::Left { resource, .. } if resource == "persistentvolumeclaims" => "pvc",
                    _ => "pod",
                };
                for name in pods.iter().take(3) {
                    self.why(&format!("{kind}/{name}"));
                }
            }
            Reason::Left { resource, .. } => {
                let line = format!("get {}", for_shell(resource));
                self.kubectl(&line, "see what is left");
            }
            Reason::FirstConsumer { .. }
            | Reason::NoVolume
            | Reason::VolumeTaken { .. }
            | Reason::Provisioning { .. } => self.describe(),
            Reason::NoClass { .. } => {
                self.kubectl_outside("get storageclasses", "see which classes exist");
            }
            Reason::Content {
                undiscovered: true, ..
            } => {
                self.kubectl_outside("get apiservices", "see which API groups are not available");
            }
            Reason::InOrder { pod, .. } => self.why(&format!("pod/{pod}")),
            Reason::NotCreated { message, .. } if message.contains("exceeded quota") => {
                self.kubectl(
                    "describe quota",
                    "see what is used, then free some or raise the quota",
                );
            }
            Reason::NotCreated { owner, .. }
            | Reason::SetEnding { owner }
            | Reason::OutsideSet { owner, .. }
            | Reason::NotCreatedYet { owner } => {
                let line = format!("describe {}", for_shell(owner));
                self.kubectl(&line, "read its events");
            }
            Reason::Content { .. }
            | Reason::ContentFinalizer { .. }
            | Reason::Unreported
            | Reason::NothingReported
            | Reason::Evicted { .. }
            | Reason::NeverEvicted
            | Reason::Unevicted => {}
        }
    }
}
