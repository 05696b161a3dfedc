//! The opt-outs on the Machine of a Node, in words.

use std::time::Duration;

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::Now;
use other_tools::{MachineRecord, MachineRef, NodeKeys};

use super::hint_command::Program;
use crate::text::{escape, for_shell};

/// The tool behind a name of `--opt-outs`.
fn tool_name(tool: &str) -> &str {
    match tool {
        "cluster-api" => "Cluster API",
        "openshift" => "the OpenShift Machine API",
        other => other,
    }
}

/// Said of a Node whose Machine has no opt-out. `None`: because no management context was given.
pub(crate) fn unprotected(tool: &str, cause: Option<&str>) -> String {
    let cause = cause.unwrap_or(
        "it reads opt-outs on Machines only; to set them, add --management-context with the context of their cluster",
    );
    format!("NOT protected from {}: {cause}", tool_name(tool))
}

/// The same, if the answer to the write did not come.
pub(crate) fn may_be_unprotected(tool: &str, cause: &str) -> String {
    format!(
        "may not be protected from {}: {cause}; the write may still take effect, and the end of the lock undoes it",
        tool_name(tool)
    )
}

/// The Machine has opt-outs now.
pub(crate) fn protected(node: &str, machine: &MachineRef, context: &str, is_hold: bool) -> String {
    let lock = if is_hold { "hold" } else { "lock" };
    format!(
        "node/{node}: its {} is opted out of {} until the {lock} ends",
        machine_in(machine, context),
        tool_name(machine.api.tool)
    )
}

/// A Machine and where it is.
fn machine_in(machine: &MachineRef, context: &str) -> String {
    let (namespace, name) = (escape(&machine.namespace), escape(&machine.name));
    format!("Machine {namespace}/{name} (context {})", escape(context))
}

/// What a lock set on a Machine.
pub(crate) fn of_record(record: &MachineRecord) -> String {
    let MachineRecord {
        namespace,
        name,
        context,
        ..
    } = record;
    if !record.is_readable() {
        return "opt-outs on a Machine (the record can't be read)".to_owned();
    }
    let [namespace, name, context] = [namespace, name, context].map(|text| escape(text));
    format!("opt-outs on Machine {namespace}/{name} (context {context})")
}

/// What the opt-outs in `keys` still do, if the lock in `lease` should have ended or has ended.
pub(crate) fn after_end(
    keys: Option<&NodeKeys>,
    lease: Option<&NodeLease>,
    now: Now,
) -> Option<String> {
    let machine = keys?.elsewhere.machine.as_ref()?;
    let is_due = |lease: &NodeLease| lease.is_overdue(now) || !lease.state(now).is_locked();
    lease.is_none_or(is_due).then(|| {
        let machine = match machine.is_readable() {
            true => format!(
                "Machine {}/{}",
                escape(&machine.namespace),
                escape(&machine.name)
            ),
            false => "a Machine".to_owned(),
        };
        format!("the opt-outs on {machine} still block its deletion and rollouts")
    })
}

/// There is no such Machine.
pub(crate) fn missing(machine: &MachineRef, context: &str) -> String {
    format!("there is no {}", machine_in(machine, context))
}

/// The Machine is that of another node, or of none.
pub(crate) fn of_another(machine: &MachineRef, context: &str) -> String {
    format!("{} does not name this node", machine_in(machine, context))
}

/// Nothing was removed from the Machine that the record on `node` names.
pub(crate) fn not_removed(node: &str, machine: &MachineRef, context: &str) -> String {
    let why = of_another(machine, context);
    format!("node/{node}: {why}; nothing was removed there")
}

/// The Machine disappeared before it could be written.
pub(crate) const GONE: &str = "its Machine does not exist any more";

/// The Node has no Machine of the tool.
pub(crate) const NOT_NAMED: &str = "the Node does not name its Machine";

/// The cluster does not have the API of the Machines.
pub(crate) fn not_installed(context: &str, tool: &str) -> String {
    format!(
        "the cluster of context {} has no Machines of {}; name the context of its management cluster",
        escape(context),
        tool_name(tool)
    )
}

/// The API that the record names is not known.
pub(crate) const UNKNOWN_API: &str = "this release does not know its API";

/// The credential plugin of a context that only a record names did not end.
pub(crate) fn no_credentials(context: &str, limit: Duration) -> String {
    format!(
        "the credential plugin of context {} did not end in {}s",
        escape(context),
        limit.as_secs()
    )
}

/// The cluster did not answer for another node.
pub(crate) fn silent(context: &str) -> String {
    format!(
        "the cluster of context {} did not answer a moment ago",
        escape(context)
    )
}

/// The record on `node` can't be read and is removed, and the next command.
pub(crate) fn unreadable(node: &str, program: &Program) -> (String, String) {
    (
        format!(
            "node/{node}: its record of a Machine can't be read, and was removed: the opt-outs may stay on the Machine, and \
             block its deletion and rollouts"
        ),
        format!(
            "to remove them: `{}`",
            program.run("doctor --fix --management-context=NAME")
        ),
    )
}

/// Why opt-outs stay on a Machine.
#[derive(Debug)]
pub(crate) enum Left {
    /// It could not be reached or written.
    Failed(String),
    /// The context does not lead to the recorded cluster.
    Elsewhere { context: String },
    /// The kubeconfig has no such context.
    NoContext(String),
    /// It was created from a copy, so others own what it has.
    Copied { context: String },
}

/// What a lock that ends leaves on a Machine, and the next command.
pub(crate) fn left(
    node: &str,
    record: &MachineRecord,
    left: &Left,
    program: &Program,
) -> (String, String) {
    let server = escape(&record.server);
    // With `=`, a name that begins with a dash is a value, too.
    let unhold =
        |context: &str| program.run(format!("unhold {node} --management-context={context}"));
    let (cause, hint) = match left {
        Left::Failed(cause) => {
            let unhold = unhold(&for_shell(&record.context));
            (cause.clone(), format!("to remove them: `{unhold}`"))
        }
        Left::Elsewhere { context } => (
            format!(
                "the Machine is not in context {}; it was in the cluster at {server}",
                escape(context)
            ),
            format!(
                "to remove them, name the context of that cluster: `{}`",
                unhold("NAME")
            ),
        ),
        Left::NoContext(cause) => (
            format!("{cause}; it was that of the cluster at {server}"),
            format!(
                "to remove them, name the context of that cluster: `{}`",
                unhold("NAME")
            ),
        ),
        Left::Copied { context } => {
            let resource = record.machine().map(|machine| machine.api.resource);
            let edit = format!(
                "kubectl --context={} -n {} edit {} {}",
                for_shell(context),
                for_shell(&record.namespace),
                resource.unwrap_or_default(),
                for_shell(&record.name)
            );
            (
                "it was created again from a copy".to_owned(),
                format!("to remove them: `{edit}`"),
            )
        }
    };
    let (namespace, name) = (escape(&record.namespace), escape(&record.name));
    (
        format!(
            "node/{node}: the opt-outs on Machine {namespace}/{name} stay, and block its deletion and rollouts: {cause}"
        ),
        hint,
    )
}

/// Why a Machine gets no opt-outs: an earlier Machine of its Node still has some.
pub(crate) fn earlier(record: &MachineRecord) -> String {
    let (namespace, name) = (escape(&record.namespace), escape(&record.name));
    format!("the node's earlier Machine {namespace}/{name} still has opt-outs")
}

/// A Machine and its node.
pub(crate) fn of_node(record: &MachineRecord, node: &str) -> String {
    format!("{}/{} of node/{node}", record.namespace, record.name)
}
