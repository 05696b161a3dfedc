//! The opt-outs on the Machine of a Node, in words.

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
    let [namespace, name, context] = [namespace, name, context].map(|text| escape(text));
    format!("opt-outs on Machine {namespace}/{name} (context {context})")
}

/// What the opt-outs in `keys` still do, if the lock in `lease` should have ended or has ended.
pub(crate) fn after_end(
    keys: Option<&NodeKeys>,
    lease: Option<&NodeLease>,
    now: Now,
) -> Option<String> {
    let machine = keys?.machine.as_ref()?;
    let is_due = |lease: &NodeLease| lease.is_overdue(now) || !lease.state(now).is_locked();
    lease.is_none_or(is_due).then(|| {
        let (namespace, name) = (escape(&machine.namespace), escape(&machine.name));
        format!("the opt-outs on Machine {namespace}/{name} still block its deletion and rollouts")
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

/// The API that the record names is not known.
pub(crate) const UNKNOWN_API: &str = "this release does not know its API";

/// The context leads to another cluster than before, without this Machine.
pub(crate) fn elsewhere(context: &str, server: &str) -> String {
    let context = escape(context);
    format!(
        "the Machine is not in context {context}; it was in the cluster at {}",
        escape(server)
    )
}

/// A Machine that was created from a copy has the hook.
pub(crate) fn copied(record: &MachineRecord, context: &str) -> String {
    let resource = record.machine().map(|machine| machine.api.resource);
    format!(
        "it was created again from a copy; remove them with `kubectl --context {} -n {} edit {} {}`",
        for_shell(context),
        for_shell(&record.namespace),
        resource.unwrap_or_default(),
        for_shell(&record.name)
    )
}

/// What a lock that ends leaves on a Machine, and the next command.
pub(crate) fn left(
    node: &str,
    record: &MachineRecord,
    cause: &str,
    program: &Program,
) -> (String, String) {
    let (namespace, name) = (escape(&record.namespace), escape(&record.name));
    let unhold = format!(
        "unhold {node} --management-context {}",
        for_shell(&record.context)
    );
    (
        format!(
            "node/{node}: the opt-outs on Machine {namespace}/{name} stay, and block its deletion and rollouts: {cause}"
        ),
        format!("to remove them: `{}`", program.run(unhold)),
    )
}
