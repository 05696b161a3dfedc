//! Hooks: one that runs until the test lets it end, and one that kills the command that runs it.

use std::path::PathBuf;

use super::Stage;
use super::run::{Maint, Running};

/// Kills the command, which is the parent of the hook's supervisor.
pub(crate) const KILLS: &str = "kill -9 $(cut -d' ' -f4 /proc/$PPID/stat)";

/// A hook that kills the command that runs it.
pub(crate) fn hook_that_kills() -> [String; 4] {
    ["--", "sh", "-c", &format!("{KILLS}; sleep 600")].map(ToOwned::to_owned)
}

/// A hook that prints that it has begun, and succeeds once the test lets it end.
pub(crate) struct PatientHook {
    script: String,
    /// The file that the hook waits for.
    end: PathBuf,
}

impl PatientHook {
    pub(crate) fn new(stage: &Stage) -> Self {
        let end = stage.directory().join("end");
        let script = format!(
            "echo begun; until [ -e '{}' ]; do sleep 0.1; done",
            end.display()
        );
        Self { script, end }
    }

    /// A hook that does this first.
    pub(crate) fn that(self, does: &str) -> Self {
        Self {
            script: format!("{does}; {}", self.script),
            ..self
        }
    }

    /// Adds this hook to the command line.
    pub(crate) fn of(&self, verb: Maint) -> Maint {
        verb.args(["--", "sh", "-c", &self.script])
    }

    /// Starts the command with this hook, and waits until the hook has begun.
    #[track_caller]
    pub(crate) fn begins(&self, verb: Maint) -> Running {
        self.of(verb).until_it_says("begun")
    }

    pub(crate) fn may_end(&self) {
        std::fs::write(&self.end, "").expect("a file");
    }
}
