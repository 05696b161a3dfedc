//! What a connection takes from around the process.
//!
//! kube reads the variables of its own process, so a test cannot set them without affecting the others.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Environment variables, and where a pod finds its credentials: an argument, so that tests need no process of their own.
pub struct Environment {
    variables: HashMap<OsString, OsString>,
    /// Whether a credential plugin may ask on stdin: it is a terminal, and nobody else reads it.
    pub stdin_may_ask: bool,
    /// Where Kubernetes mounts a pod's service account.
    pub service_account: PathBuf,
}

impl Environment {
    /// This process's own, without a terminal.
    pub fn of_this_process() -> Self {
        Self::of_variables(std::env::vars_os())
    }

    /// An environment of these variables alone, without a terminal.
    pub fn of_variables<K: Into<OsString>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        Self {
            variables: variables
                .into_iter()
                .map(|(k, v)| (k.into(), v.into()))
                .collect(),
            stdin_may_ask: false,
            service_account: PathBuf::from("/var/run/secrets/kubernetes.io/serviceaccount"),
        }
    }

    /// A variable's value, which may be empty.
    pub fn set_os(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
    }

    /// A variable's value; an empty one counts as unset, as it does for kubectl.
    pub fn get_os(&self, name: &str) -> Option<&OsStr> {
        self.set_os(name).filter(|value| !value.is_empty())
    }

    /// A variable's value where it is text.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.get_os(name)?.to_str()
    }

    /// The first of these variables that is set.
    pub fn first_of(&self, names: [&str; 2]) -> Option<&str> {
        names.into_iter().find_map(|name| self.get(name))
    }
}
