//! Why an object is stuck, in sentences, and what to run next.

mod next;

use maintenance_lease::protocol::Now;
use pod_safety::constants::POD_GC;
use pod_safety::node_health::Health;
use pod_safety::why::{Diagnosis, Eviction, Finalizer, Reason, State, Unread, User};
use pod_safety::words::{age, few};

pub(crate) use self::next::{Step, pod_step, steps, volume_steps};
use super::time::{length, remaining};
use crate::object::{Kind, Object};
use crate::text::escape;

/// What could not be read, in one line.
pub(crate) fn unread(unread: &[Unread]) -> Option<String> {
    let unread: Vec<String> = { unread.iter() }
        .map(|unread| format!("{} ({})", unread.what, escape(&unread.why.to_string())))
        .collect();
    (!unread.is_empty()).then(|| format!("could not read {}", unread.join(", ")))
}

/// The state of the object, in a sentence.
pub(crate) fn opening(subject: &Object, found: &Diagnosis, now: Now) -> String {
    let shown = subject.shown();
    let place = match &found.node {
        Some(node) => format!("on node/{node}"),
        None => "and has no node".to_owned(),
    };
    match found.state {
        State::Missing => format!("{shown} does not exist."),
        State::Pending if subject.kind == Kind::Pod => format!("{shown} is Pending {place}."),
        State::Pending => format!("{shown} is Pending."),
        State::Bound => format!("{shown} is Bound."),
        State::Lost => format!("{shown} is Lost."),
        State::Active => format!("{shown} is Active."),
        State::Running => format!("{shown} is Running {place}."),
        State::Finished => format!("{shown} has finished."),
        State::Ending { .. } => format!("{shown} is being deleted."),
        State::Terminating { since } if subject.kind != Kind::Pod => format!(
            "{shown} has been Terminating for {}.",
            age(now.latest - since)
        ),
        State::Terminating { since } => {
            format!("{shown} should have ended {} ago.", age(now.latest - since))
        }
        State::Finalizing { since } => format!(
            "{shown} ended {} ago, and only its finalizers keep it.",
            age(now.latest - since)
        ),
    }
}

/// The whole explanation, in one paragraph.
pub(crate) fn paragraph(subject: &Object, found: &Diagnosis, now: Now) -> String {
    let mut sentences = vec![opening(subject, found, now)];
    sentences.extend(found.reasons.iter().map(|reason| sentence(reason, now)));
    sentences.extend(waiting(found));
    if found.reasons.is_empty() && found.unread.is_empty() {
        sentences.push("Nothing was found that blocks it.".to_owned());
    }
    sentences.join(" ")
}

/// What waits for the object, in a sentence.
pub(crate) fn waiting(found: &Diagnosis) -> Option<String> {
    let owner = found.waiting_owner.as_ref()?;
    Some(format!(
        "{} cannot replace it before it is gone.",
        escape(owner)
    ))
}

/// A reason in one sentence or two.
pub(crate) fn sentence(reason: &Reason, now: Now) -> String {
    match reason {
        Reason::Grace { until, pre_stop } => {
            let left = remaining(*until - now.earliest);
            let hooks = match &pre_stop[..] {
                [] => String::new(),
                names => format!(
                    ", in which the preStop hook of {} may still run",
                    containers(names)
                ),
            };
            format!("It has {left} of its grace period left{hooks}.")
        }
        Reason::Node { name, health } => node(name, health, now),
        Reason::Evicted { at } if *at <= now.earliest => {
            format!("Its eviction was due {} ago.", age(now.earliest - *at))
        }
        Reason::Evicted { at } => format!("It will be evicted in {}.", age(*at - now.earliest)),
        Reason::NeverEvicted => {
            "It tolerates the taints of the node without a time limit, so it is never evicted."
                .to_owned()
        }
        Reason::Unevicted => "The node has no taint yet that evicts it.".to_owned(),
        Reason::Containers { node, names } => format!(
            "The kubelet on node/{node} has not been able to end {}. Often a process hangs in the kernel, \
             for example on storage that does not answer.",
            containers(names)
        ),
        Reason::Stopping { node, started } => {
            let containers = match started {
                true => "Its containers have stopped",
                false => "Its containers were never started",
            };
            format!(
                "{containers}, but the kubelet on node/{node} has not finished stopping it (sandbox, network or \
                 devices)."
            )
        }
        Reason::Unmount { node, claims } => {
            let claims = match &claims[..] {
                [] => String::new(),
                claims => format!(" (claim {})", list(claims)),
            };
            format!(
                "Its containers have ended, and the kubelet on node/{node} has not unmounted its \
                 volumes{claims} yet."
            )
        }
        Reason::Unconfirmed { node } => {
            format!("The kubelet on node/{node} has not confirmed that it ended.")
        }
        Reason::Collected => format!(
            "It has no node. The pod garbage collector usually ends it within {}.",
            length(POD_GC)
        ),
        Reason::Finalizer(one) => finalizer(one, ""),
        Reason::Unschedulable { message } => format!("The scheduler says: {}", quoted(message)),
        Reason::Gated { gates } => {
            format!(
                "It is scheduled only after its scheduling gates are removed: {}.",
                list(gates)
            )
        }
        Reason::NoScheduler { scheduler } => format!(
            "Its scheduler, {}, has not reported on it yet: check that it runs.",
            escape(scheduler)
        ),
        Reason::VolumeAffinity {
            claim,
            volume,
            nodes,
        } => affinity(claim, volume, nodes),
        Reason::MultiAttach { .. } => multi_attach(reason, now),
        Reason::AttachFailed { volume, message } => {
            format!(
                "Volume {} cannot be attached: {}",
                escape(volume),
                quoted(message)
            )
        }
        Reason::ClaimMissing { claim } => format!("Its pvc/{} does not exist.", escape(claim)),
        Reason::ClaimUnbound { claim } => format!("Its pvc/{} has no volume yet.", escape(claim)),
        Reason::ClaimEnding { claim } => format!("Its pvc/{} is being deleted.", escape(claim)),
        Reason::VolumeMissing { volume } => {
            format!("Volume {} does not exist.", escape(volume))
        }
        Reason::Container {
            name,
            reason,
            message,
        } => {
            let message = match &**message {
                "" => ".".to_owned(),
                message => format!(": {}", quoted(message)),
            };
            format!(
                "Container {} waits in {}{message}",
                escape(name),
                escape(reason)
            )
        }
        Reason::Eviction(eviction) => self::eviction(eviction),
        Reason::UsedBy { pods } => used_by(pods),
        Reason::FirstConsumer { pods } => match &pods[..] {
            [] => "Its volume is created when a pod first uses it, and no pod uses it yet.".to_owned(),
            pods => format!(
                "Its volume is created once the scheduler has chosen a node for the first pod that uses it: pod/{}.",
                list(pods)
            ),
        },
        Reason::NoClass { class } => format!("Its storage class {} does not exist.", escape(class)),
        Reason::NoVolume => {
            "No volume fits, and no storage class creates one: create a volume by hand, or a default storage class."
                .to_owned()
        }
        Reason::VolumeTaken { volume, by } => format!(
            "The volume {} that it names is bound to pvc {}.",
            escape(volume),
            escape(by)
        ),
        Reason::Provisioning { provisioner } => {
            format!("{} has not created its volume yet.", escape(provisioner))
        }
        Reason::Content { message, .. } => {
            format!("The namespace controller says: {}", quoted(message))
        }
        Reason::Left {
            resource,
            count,
            names,
        } => {
            let names = match &names[..] {
                [] => String::new(),
                names => format!(": {}", list(names)),
            };
            format!("Still in it: {} ({count}{names}).", escape(resource))
        }
        Reason::ContentFinalizer { finalizer, count } => {
            let objects = if *count == 1 { "object" } else { "objects" };
            self::finalizer(finalizer, &format!(" is on {count} {objects} in the namespace"))
        }
        Reason::Unreported => "The namespace controller has not reported on it yet.".to_owned(),
        Reason::NothingReported => {
            "The namespace controller reports no problem and nothing left in it. It checks again by itself."
                .to_owned()
        }
        Reason::SetEnding { owner } => {
            format!("{} is being deleted, so it creates no pods.", escape(owner))
        }
        Reason::OutsideSet {
            owner,
            first,
            replicas,
        } => {
            let s = if *replicas == 1 { "" } else { "s" };
            format!(
                "{} has {replicas} replica{s} (first ordinal {first}), so it does not create this pod.",
                escape(owner)
            )
        }
        Reason::InOrder { owner, pod } => format!(
            "{} creates its pods in order, and waits for pod/{} to be ready.",
            escape(owner),
            escape(pod)
        ),
        Reason::NotCreated { owner, message } => {
            format!("{} could not create it: {}", escape(owner), quoted(message))
        }
        Reason::NotCreatedYet { owner } => format!("{} has not created it yet.", escape(owner)),
        Reason::Event {
            reason,
            message,
            at,
        } => {
            let age = at.map(|at| format!(", {} ago", age(now.latest - at)));
            format!(
                "The last warning ({}{}): {}",
                escape(reason),
                age.unwrap_or_default(),
                quoted(message)
            )
        }
    }
}

fn node(name: &str, health: &Health, now: Now) -> String {
    let node = format!("node/{name}");
    let by = |by: &Option<String>| {
        let by = by.as_ref().map(|by| format!(" by {}", escape(by)));
        by.unwrap_or_default()
    };
    match health {
        Health::Ready => format!("{node} is Ready."),
        Health::NotReady { reporting: true } => {
            format!("{node} is NotReady, but its kubelet still reports.")
        }
        Health::NotReady { reporting: false } => {
            format!("{node} is NotReady, and its kubelet no longer reports.")
        }
        Health::Unreachable { since } => {
            let since = since.map(|since| format!(" for {}", age(now.latest - since)));
            format!(
                "{node} has been unreachable{}, so its kubelet cannot end the pod or confirm that it ended.",
                since.unwrap_or_default()
            )
        }
        Health::OutOfService { by: who, .. } => format!(
            "{node} was taken out of service{}, so Kubernetes soon removes its pods that are being deleted.",
            by(who)
        ),
        Health::Restarted { by } => format!(
            "{node} was fenced by {} and has restarted, but was not unfenced.",
            escape(by)
        ),
        Health::KubeletAlive { by: who } => {
            format!(
                "{node} was taken out of service{}, but its kubelet is alive.",
                by(who)
            )
        }
        Health::Gone => format!(
            "{node} no longer exists. The pod garbage collector usually deletes the pod within {}.",
            length(POD_GC)
        ),
    }
}

/// A sentence about a finalizer. `place` says which objects have it.
fn finalizer(finalizer: &Finalizer, place: &str) -> String {
    let name = format!("Finalizer {}{place}", escape(&finalizer.name));
    match (finalizer.owner, &finalizer.manager) {
        (Some(owner), _) => format!("{name}: {} removes it when {}.", owner.who, owner.when),
        (None, Some(manager)) => format!(
            "{name}: the controller of this finalizer has to remove it; {} added it.",
            escape(manager)
        ),
        (None, None) => format!("{name}: the controller of this finalizer has to remove it."),
    }
}

fn affinity(claim: &str, volume: &str, nodes: &[(String, bool)]) -> String {
    let volume = format!("Volume {} (claim {})", escape(volume), escape(claim));
    let shown = |(name, is_down): &(String, bool)| {
        let why = if *is_down { "not ready" } else { "cordoned" };
        format!("node/{name} ({why})")
    };
    let nodes: Vec<String> = nodes.iter().map(shown).collect();
    match &nodes[..] {
        [] => format!("{volume} cannot be used on any node: its node affinity matches none."),
        nodes => format!("{volume} can only be used on {}.", few(nodes)),
    }
}

fn multi_attach(reason: &Reason, now: Now) -> String {
    let Reason::MultiAttach {
        claim,
        volume,
        node,
        health,
        pods,
        detaching,
    } = reason
    else {
        return String::new();
    };
    let users: Vec<String> = pods.iter().map(|pod| format!("pod/{pod}")).collect();
    let used = match (&users[..], detaching) {
        (_, true) => ", and is waiting to be detached".to_owned(),
        ([], false) => String::new(),
        (users, false) => format!(", where {} uses it", few(users)),
    };
    let health = match health {
        Some(Health::Unreachable { since }) => {
            let since = since.map(|since| format!(" for {}", age(now.latest - since)));
            format!(
                " That node has been unreachable{}.",
                since.unwrap_or_default()
            )
        }
        Some(Health::Gone) => " That node no longer exists.".to_owned(),
        _ => String::new(),
    };
    format!(
        "Volume {} (claim {}) can be attached to one node at a time, and is attached to node/{node}{used}.{health}",
        escape(volume),
        escape(claim),
    )
}

fn eviction(eviction: &Eviction) -> String {
    let refused = "`kubectl drain` would not evict it";
    match eviction {
        Eviction::Budget {
            name,
            failure: Some(failure),
            ..
        } => format!(
            "{refused}: the disruption controller could not process pdb/{}: {}",
            escape(name),
            quoted(failure)
        ),
        Eviction::Budget {
            name,
            desired,
            healthy,
            failure: None,
        } => format!(
            "{refused}: pdb/{} allows no disruption now ({healthy} healthy, {desired} needed).",
            escape(name)
        ),
        Eviction::Several { names } => format!(
            "{refused}: it has more than one PodDisruptionBudget ({}), which Kubernetes does not support.",
            list(names)
        ),
    }
}

fn used_by(pods: &[User]) -> String {
    let names = |finished| -> Vec<String> {
        let users = pods.iter().filter(|user| user.finished == finished);
        users.map(|user| format!("pod/{}", user.name)).collect()
    };
    let parts = match (&names(false)[..], &names(true)[..]) {
        (running, []) => format!("it is in use by {}", list(running)),
        ([], finished) => format!("it is in use by {}, although finished", list(finished)),
        (running, finished) => format!(
            "it is in use by {}, and by {}, although finished",
            list(running),
            list(finished)
        ),
    };
    format!("The PVC protection controller keeps it, because {parts}.")
}

/// Containers by name.
fn containers(names: &[String]) -> String {
    let s = if names.len() == 1 { "" } else { "s" };
    format!("container{s} {}", list(names))
}

fn list(names: &[String]) -> String {
    escape(&few(names))
}

/// The text of another program, as the end of a sentence.
fn quoted(message: &str) -> String {
    let message = escape(message.trim());
    match message.ends_with(['.', '!', '?']) {
        true => message,
        false => format!("{message}."),
    }
}
