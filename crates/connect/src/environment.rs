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
    /// Whether `Path` and `PATH` are one variable, as on Windows.
    ignores_case: bool,
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
        Self::of_named(variables, IS_WINDOWS)
    }

    fn of_named<K: Into<OsString>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (K, V)>,
        ignores_case: bool,
    ) -> Self {
        Self {
            variables: variables
                .into_iter()
                .map(|(k, v)| (key(&k.into(), ignores_case).into_owned(), v.into()))
                .collect(),
            ignores_case,
            stdin_may_ask: false,
            service_account: PathBuf::from("/var/run/secrets/kubernetes.io/serviceaccount"),
        }
    }

    /// A variable's value, which may be empty.
    pub fn set_os(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(&*key(name.as_ref(), self.ignores_case))
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
    pub fn first_of(&self, names: [&str; 2]) -> Option<&str> {
        names.into_iter().find_map(|name| self.get(name))
    }
}

fn key(name: &OsStr, ignores_case: bool) -> Cow<'_, OsStr> {
    match ignores_case {
        true => name.to_ascii_uppercase().into(),
        false => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_by_case_except_on_windows() {
        let path = |name: &str, ignores_case| {
            let environment = Environment::of_named([("Path", "programs")], ignores_case);
            environment.get(name).is_some()
        };
        for (name, on_windows) in [("Path", true), ("PATH", true), ("PATHEXT", false)] {
            assert_eq!(path(name, true), on_windows, "{name}");
            assert_eq!(path(name, false), name == "Path", "{name}");
        }
    }
}
