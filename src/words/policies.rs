//! Why the policies were not changed, and what to do about it.

use policies::OLDEST_MINOR;

use super::program::Program;
use crate::error::PolicyRefusal;
use crate::text::escape;

/// Message and hint.
pub(crate) fn refusal(refusal: &PolicyRefusal, program: &Program) -> (String, String) {
    let by_its_tool =
        || format!("change it with that tool; `{program} install -o yaml` prints what to apply");
    match refusal {
        PolicyRefusal::NotInstalled => (
            "the policies are not installed".to_owned(),
            format!("install them first: `{program} install`"),
        ),
        PolicyRefusal::OldServer { version } => (
            format!(
                "the server is Kubernetes {version}; the policies need 1.{OLDEST_MINOR} or newer"
            ),
            "kubectl maint works without them; to apply the roles alone, use deploy/rbac.yaml"
                .to_owned(),
        ),
        PolicyRefusal::OtherManager { object, manager } => (
            format!(
                "{object} is managed by {}; nothing was changed",
                escape(manager)
            ),
            by_its_tool(),
        ),
        PolicyRefusal::Conflict { object, error } => (
            format!(
                "another tool manages {object}: {}",
                escape(&error.to_string())
            ),
            by_its_tool(),
        ),
        PolicyRefusal::StillEnforced(error) => (
            format!(
                "the policies were switched off, but the server still refuses writes: {}",
                escape(&error.to_string())
            ),
            "check whether another tool creates the bindings again, with `kubectl get \
             validatingadmissionpolicybinding`"
                .to_owned(),
        ),
    }
}
