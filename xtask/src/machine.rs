//! What a few tests need on the machine, besides Rust and Go.

use std::process::Command;

use crate::cargo::succeeds;
use crate::faketime;

/// Something that not every machine has.
pub(crate) struct Part {
    /// Its name for people.
    what: &'static str,
    /// What is not tested without it.
    without: &'static str,
    /// The variable that skips tests which need it. Otherwise they fail without it.
    pub(crate) variable: &'static str,
    is_there: fn() -> bool,
}

const PARTS: [Part; 5] = [
    Part {
        what: "libfaketime",
        without: "clocks that differ between processes",
        variable: "CHAOS_WITHOUT_FAKETIME",
        is_there: || faketime::library().is_some(),
    },
    Part {
        what: "zsh",
        without: "its own part in completion",
        variable: "TESTS_WITHOUT_ZSH",
        is_there: || is_on_path("zsh"),
    },
    Part {
        what: "fish",
        without: "its own part in completion",
        variable: "TESTS_WITHOUT_FISH",
        is_there: || is_on_path("fish"),
    },
    Part {
        what: "jq",
        without: "the examples in docs/json.md",
        variable: "TESTS_WITHOUT_JQ",
        is_there: || is_on_path("jq"),
    },
    Part {
        what: "process namespaces",
        without: "programs that are the first process of a container",
        variable: "TESTS_WITHOUT_PID_NAMESPACE",
        is_there: has_process_namespaces,
    },
];

impl Part {
    /// The parts that this machine lacks.
    pub(crate) fn missing() -> impl Iterator<Item = Self> {
        PARTS.into_iter().filter(|part| !(part.is_there)())
    }

    /// The warning about the tests that are skipped without it.
    pub(crate) fn warning(&self) -> String {
        format!(
            "warning: there is no {} here: not tested: {}",
            self.what, self.without
        )
    }
}

fn is_on_path(program: &str) -> bool {
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
    fn a_program_is_found_where_it_is() {
        assert!(is_on_path("sh"));
        assert!(!is_on_path("no-such-shell"));
    }

    #[test]
    fn what_is_lost_is_told_with_what_is_missing() {
        let part = PARTS
            .iter()
            .find(|part| part.what == "zsh")
            .expect("a part");
        assert_eq!(
            part.warning(),
            "warning: there is no zsh here: not tested: its own part in completion"
        );
    }
}
