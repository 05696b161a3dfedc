//! The opt-outs on the Machine of a Node, in words.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::Now;
use other_tools::{MachineRecord, MachineRef, NodeKeys, WriteError};

use super::hint_command::Program;
use super::machine_name::{machine_in, named, tool_name};
use super::protection;
use crate::text::{escape, for_shell};

/// Said of a Node that `tool` does not leave alone.
pub(crate) fn unprotected(tool: &str, cause: &str) -> String {
    format!("NOT protected from {}: {cause}", tool_name(tool))
}

/// The same after a write that failed with `error`.
pub(crate) fn not_set(tool: &str, error: &WriteError) -> String {
    match error.is_certain() {
        true => unprotected(tool, &protection::cause(error)),
        false => format!(
            "might not be protected from {}: {}; the write may still take effect, and is undone when the lock ends",
            tool_name(tool),
            protection::cause(error)
        ),
    }
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

/// What a lock set on a Machine.
pub(crate) fn of_record(record: &MachineRecord) -> String {
    if !record.is_readable() {
        return "opt-outs on a Machine (the record can't be read)".to_owned();
    }
    let machine = named(&record.namespace, &record.name);
    format!(
        "opt-outs on {machine} (context {})",
        escape(&record.context)
    )
}

/// What the opt-outs in `keys` still do, if the lock in `lease` should have ended or has ended.
pub(crate) fn after_end(
    keys: Option<&NodeKeys>,
    lease: Option<&NodeLease>,
    now: Now,
) -> Option<String> {
    let machine = keys?.other_objects.machine.as_ref()?;
    let is_due = |lease: &NodeLease| lease.is_overdue(now) || !lease.state(now).is_locked();
    lease.is_none_or(is_due).then(|| {
        let machine = match machine.is_readable() {
            true => named(&machine.namespace, &machine.name),
            false => "a Machine".to_owned(),
        };
        format!("the opt-outs on {machine} still block its deletion and rollouts")
    })
}

/// Nothing was removed from the Machine that the record on `node` names.
pub(crate) fn not_removed(node: &str, error: &WriteError) -> String {
    let cause = protection::cause(error);
    format!("node/{node}: {cause}; nothing was removed there")
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

/// What a lock that ends leaves on a Machine, and the next command.
pub(crate) fn left(
    node: &str,
    record: &MachineRecord,
    error: &WriteError,
    program: &Program,
) -> (String, String) {
    // With `=`, a name that begins with a dash is a value, too.
    let unhold =
        |context: &str| program.run(format!("unhold {node} --management-context={context}"));
    let hint = match error {
        WriteError::OtherCluster { .. } | WriteError::NoContext { .. } => format!(
            "to remove them, name the context of that cluster: `{}`",
            unhold("NAME")
        ),
        WriteError::Copied { context } => {
            let resource = record.machine().map(|machine| machine.api.resource);
            format!(
                "to remove them: `kubectl --context={} -n {} edit {} {}`",
                for_shell(context),
                for_shell(&record.namespace),
                resource.unwrap_or_default(),
                for_shell(&record.name)
            )
        }
        _ => format!("to remove them: `{}`", unhold(&for_shell(&record.context))),
    };
    let machine = named(&record.namespace, &record.name);
    let cause = protection::cause(error);
    (
        format!(
            "node/{node}: the opt-outs on {machine} stay, and block its deletion and rollouts: {cause}"
        ),
        hint,
    )
}

/// A Machine and its node.
pub(crate) fn of_node(record: &MachineRecord, node: &str) -> String {
    format!("{}/{} of node/{node}", record.namespace, record.name)
}
