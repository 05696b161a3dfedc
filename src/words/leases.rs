//! What Leases are for, and remarks about a list of them.

use maintenance_lease::LeasePurpose;

use super::status::NOTHING_FOUND;

/// Candidates are missing from the list.
pub(crate) const NO_CANDIDATES: &str =
    "no permission to list candidates of coordinated leader elections";

/// kubectl's words for an empty list of `namespace`, or of all (`None`), and where to look for more.
pub(crate) fn nothing_found(namespace: Option<&str>, is_of_heartbeats: bool) -> String {
    match namespace {
        None => NOTHING_FOUND.to_owned(),
        Some(_) if is_of_heartbeats => {
            "No resources found: add --heartbeats to show heartbeats".to_owned()
        }
        Some(namespace) => {
            format!("No resources found in {namespace} namespace: add -A for all namespaces")
        }
    }
}

/// A candidate for a Lease in coordinated leader election.
pub(crate) fn candidate(lease: &str, version: Option<&str>) -> String {
    match version {
        Some(version) => format!("candidate for {lease}, {version}"),
        None => format!("candidate for {lease}"),
    }
}

/// The word for programs.
pub(crate) fn purpose_word(purpose: LeasePurpose<'_>) -> &'static str {
    match purpose {
        LeasePurpose::Heartbeat { .. } => "Heartbeat",
        LeasePurpose::Maintenance { .. } => "Maintenance",
        LeasePurpose::Remediation { .. } => "Remediation",
        LeasePurpose::ApiServerIdentity { .. } => "ApiServerIdentity",
        LeasePurpose::LeaderElection { .. } => "LeaderElection",
        LeasePurpose::Lock => "Lock",
        LeasePurpose::Unknown => "Unknown",
    }
}

/// The words for people, without the Lease's name, which has a column of its own.
pub(crate) fn purpose(purpose: LeasePurpose<'_>) -> String {
    match purpose {
        LeasePurpose::Heartbeat { .. } => "node heartbeat".to_owned(),
        LeasePurpose::Maintenance { .. } => "node maintenance".to_owned(),
        LeasePurpose::Remediation { .. } => "node remediation (medik8s)".to_owned(),
        LeasePurpose::ApiServerIdentity { program, host } => {
            let program = match program {
                "kube-apiserver" => "API server",
                program => program,
            };
            let host = host.map(|host| format!(" on {host}"));
            format!("{program}{}", host.unwrap_or_default())
        }
        LeasePurpose::LeaderElection { strategy: None } => "leader election".to_owned(),
        LeasePurpose::LeaderElection {
            strategy: Some(strategy),
        } => format!("coordinated leader election ({strategy})"),
        LeasePurpose::Lock => "lock of an application".to_owned(),
        LeasePurpose::Unknown => "never used".to_owned(),
    }
}
