//! The events that daemons write, one per line, in the order in which they happened.

use std::path::{Path, PathBuf};

use super::eventually;

pub(crate) struct Journal(PathBuf);

impl Journal {
    pub(super) fn new(path: PathBuf) -> Self {
        std::fs::write(&path, "").expect("a journal");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.0).expect("a journal");
        text.lines().map(ToOwned::to_owned).collect()
    }

    /// Waits for a line that begins with `beginning`, and returns the rest of the line.
    pub(crate) fn wait_for(&self, beginning: &str) -> String {
        eventually(beginning, || {
            let lines = self.lines();
            let found = lines.iter().find_map(|line| line.strip_prefix(beginning));
            found.map(|rest| rest.trim().to_owned())
        })
    }
}
