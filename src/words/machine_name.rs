//! The names of Machines and of their tools, in words.

use other_tools::MachineRef;

use crate::text::escape;

/// The tool behind a name of `--opt-outs`.
pub(super) fn tool_name(tool: &str) -> &str {
    match tool {
        "cluster-api" => "Cluster API",
        "openshift" => "the OpenShift Machine API",
        other => other,
    }
}

/// A Machine.
pub(super) fn named(namespace: &str, name: &str) -> String {
    format!("Machine {}/{}", escape(namespace), escape(name))
}

/// A Machine and where it is.
pub(super) fn machine_in(of: &MachineRef, context: &str) -> String {
    let machine = named(&of.namespace, &of.name);
    format!("{machine} (context {})", escape(context))
}
