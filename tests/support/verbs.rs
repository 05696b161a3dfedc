//! The commands that another holder's lock blocks.

/// Command lines of other users that want to lock `node`, change its lock, or wait for it. All of them fail at once.
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
