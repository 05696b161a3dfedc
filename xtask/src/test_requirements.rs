//! Programs and rights that a few tests need on the machine, besides Rust and Go.

use std::process::Command;

use crate::cargo::succeeds;
use crate::faketime;

/// A requirement that not every machine meets.
pub(crate) struct Requirement {
    /// Its name for people.
    what: &'static str,
    /// What is not tested if it is missing.
    without: &'static str,
    /// The variable that skips the tests that need it. Without the variable, these tests fail.
    pub(crate) variable: &'static str,
    is_there: fn() -> bool,
}

const REQUIREMENTS: [Requirement; 5] = [
    Requirement {
        what: "libfaketime",
        without: "clocks that differ between processes",
        variable: "CHAOS_WITHOUT_FAKETIME",
        is_there: || faketime::library().is_some(),
    },
    Requirement {
        what: "zsh",
        without: "completion and pasted hints in that shell",
        variable: "TESTS_WITHOUT_ZSH",
        is_there: || is_on_path("zsh"),
    },
    Requirement {
        what: "fish",
        without: "completion and pasted hints in that shell",
        variable: "TESTS_WITHOUT_FISH",
        is_there: || is_on_path("fish"),
    },
    Requirement {
        what: "jq",
        without: "the examples in docs/json.md",
        variable: "TESTS_WITHOUT_JQ",
        is_there: || is_on_path("jq"),
    },
    Requirement {
        what: "process namespaces",
        without: "programs that are the first process of a container",
        variable: "TESTS_WITHOUT_PID_NAMESPACE",
        is_there: has_process_namespaces,
    },
];

impl Requirement {
    /// The requirements that this machine does not meet.
    pub(crate) fn missing() -> impl Iterator<Item = Self> {
        REQUIREMENTS
            .into_iter()
            .filter(|requirement| !(requirement.is_there)())
    }

    /// The warning about the tests that are skipped without it.
    pub(crate) fn warning(&self) -> String {
        format!(
            "warning: there is no {} here: not tested: {}",
            self.what, self.without
        )
    }
}

pub(crate) fn is_on_path(program: &str) -> bool {
    let places = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&places).any(|place| place.join(program).exists())
}

/// Whether root, or any user, may create process namespaces.
fn has_process_namespaces() -> bool {
    let as_user = ["--user", "--map-root-user"];
    [&[][..], &as_user].into_iter().any(|more| {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount-proc"]).args(more);
        succeeds(command.arg("true"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_its_path() {
        assert!(is_on_path("sh"));
        assert!(!is_on_path("no-such-shell"));
    }

    #[test]
    fn losses_are_reported_with_what_could_not_be_read() {
        let requirement = REQUIREMENTS
            .iter()
            .find(|requirement| requirement.what == "zsh")
            .expect("a requirement");
        assert_eq!(
            requirement.warning(),
            "warning: there is no zsh here: not tested: completion and pasted hints in that shell"
        );
    }
}
