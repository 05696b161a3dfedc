//! Remarks about a list of Leases.

/// Candidates are missing from the list.
pub(crate) const NO_CANDIDATES: &str =
    "no permission to list candidates of coordinated leader elections";

/// kubectl's words for an empty list of `namespace`, or of all (`None`), and where to look for more.
pub(crate) fn nothing_found(namespace: Option<&str>, is_of_heartbeats: bool) -> String {
    match namespace {
        None => "No resources found".to_owned(),
        Some(_) if is_of_heartbeats => {
            "No resources found: add --heartbeats to show heartbeats".to_owned()
        }
        Some(namespace) => {
            format!("No resources found in {namespace} namespace: add -A for all namespaces")
        }
    }
}
