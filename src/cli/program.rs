//! What the person calls this program.

use std::ffi::OsStr;
use std::path::Path;

/// The words that start this program, from `argv[0]`: kubectl runs `kubectl-maint` for
/// `kubectl maint`, and `kubectl-node_lock` for `kubectl node-lock`. Any other name is itself.
pub(crate) fn name(argv0: Option<&OsStr>) -> String {
    let stem = argv0
        .map(Path::new)
        .and_then(Path::file_stem)
        .and_then(OsStr::to_str)
        .unwrap_or("kubectl-maint");
    match stem.strip_prefix("kubectl-") {
        Some(plugin) => format!("kubectl {}", plugin.replace('-', " ").replace('_', "-")),
        None => stem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_called_as_kubectl_calls_it() {
        let called = |argv0: &str| name(Some(OsStr::new(argv0)));
        assert_eq!(called("/usr/bin/kubectl-maint"), "kubectl maint");
        assert_eq!(called("kubectl-maint.exe"), "kubectl maint");
        assert_eq!(called("kubectl-node_lock"), "kubectl node-lock");
        assert_eq!(called("./maint"), "maint");
        assert_eq!(name(None), "kubectl maint");
    }
}
