//! A hook that ends when the test says so.

use std::path::PathBuf;

use super::Stage;
use super::run::{Maint, Running};

/// A hook that says that it has begun, and succeeds once it may end.
pub(crate) struct PatientHook {
    script: String,
    /// The file that it waits for.
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

    /// One that does this at first.
    pub(crate) fn that(self, does: &str) -> Self {
        Self {
            script: format!("{does}; {}", self.script),
            ..self
        }
    }

    /// `verb` with this hook.
    pub(crate) fn of(&self, verb: Maint) -> Maint {
        verb.args(["--", "sh", "-c", &self.script])
    }

    /// Starts `verb` with it, up to its beginning.
    #[track_caller]
    pub(crate) fn begins(&self, verb: Maint) -> Running {
        self.of(verb).until_it_says("begun")
    }

    pub(crate) fn may_end(&self) {
        std::fs::write(&self.end, "").expect("a file");
    }
}
