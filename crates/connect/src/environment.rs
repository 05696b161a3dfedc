//! The environment of the process, as far as a connection depends on it.
//!
//! Gap in kube: it reads the variables of its own process, so a test cannot set them without affecting other
//! tests.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::platform::IS_WINDOWS;

/// Environment variables, and the location of a pod's credentials. It is an argument, so that tests need no
/// process of their own.
pub struct Environment {
    variables: HashMap<OsString, OsString>,
    /// Whether a credential plugin may prompt on stdin: stdin is a terminal, and nothing else reads it.
    pub stdin_may_ask: bool,
    /// The directory where Kubernetes mounts a pod's service account.
    pub service_account: PathBuf,
}

impl Environment {
    /// The environment of this process, without a terminal.
    pub fn of_this_process() -> Self {
        Self::of_variables(std::env::vars_os())
    }

    /// An environment with only these variables, without a terminal.
    pub fn of_variables<K: Into<OsString>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        Self {
            variables: variables
                .into_iter()
                .map(|(name, value)| (key(&name.into()).into_owned(), value.into()))
                .collect(),
            stdin_may_ask: false,
            service_account: PathBuf::from("/var/run/secrets/kubernetes.io/serviceaccount"),
        }
    }

    /// A variable's value, which may be empty.
    pub fn set_os(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(&*key(name.as_ref()))
            .map(OsString::as_os_str)
    }

    /// A variable's value. An empty value counts as unset, as in kubectl.
    pub fn get_os(&self, name: &str) -> Option<&OsStr> {
        self.set_os(name).filter(|value| !value.is_empty())
    }

    /// A variable's value, if it is valid Unicode.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.get_os(name)?.to_str()
    }

    /// The value of the first of these variables that is set.
    pub(super) fn first_of(&self, names: [&str; 2]) -> Option<&str> {
        names.into_iter().find_map(|name| self.get(name))
    }
}

/// On Windows, `Path` and `PATH` are one variable.
fn key(name: &OsStr) -> Cow<'_, OsStr> {
    match IS_WINDOWS {
        true => name.to_ascii_uppercase().into(),
        false => name.into(),
    }
}
