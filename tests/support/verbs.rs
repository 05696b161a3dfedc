//! The verbs that somebody's lock on a node is in the way of.

/// Command lines by which others mean to have `node`, to change its lock, or to wait for it, as it is
/// refused at once.
pub(crate) fn kept_off(node: &str) -> [Vec<&str>; 8] {
    [
        vec!["acquire", node],
        vec!["acquire", node, "--wait", "--timeout=0"],
        vec!["hold", node, "-m", "mine"],
        vec!["hold", node, "-m", "mine", "--wait", "--timeout=0"],
        vec!["renew", node],
        vec!["release", node],
        vec!["wait", node, "--for=free", "--timeout=0"],
        vec!["with", node, "--", "true"],
    ]
}
