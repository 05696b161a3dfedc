//! Keeps the logs of a control plane if a test failed.

use crate::plane::ControlPlane;
use crate::target_dir;

impl ControlPlane {
    /// Copies the logs to `target/control-plane-logs/<name>` when the control plane ends.
    ///
    /// A control plane has only one such directory: the first name counts.
    pub fn keep_logs(&self, name: &str) {
        let file_name: String = name
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || "-_.".contains(c) {
                    c
                } else {
                    '-'
                }
            })
            .collect();
        self.janitor()
            .keep_logs(&target_dir().join("control-plane-logs").join(file_name));
    }

    /// Returns a guard: if the test panics while the guard exists, the logs are kept under `name`.
    #[must_use = "the guard watches for as long as it lives"]
    pub fn keep_logs_on_panic<'a>(&'a self, name: &'a str) -> LogGuard<'a> {
        LogGuard {
            control_plane: self,
            name,
        }
    }
}

/// See [`ControlPlane::keep_logs_on_panic`].
#[derive(Debug)]
pub struct LogGuard<'a> {
    control_plane: &'a ControlPlane,
    name: &'a str,
}

impl Drop for LogGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.control_plane.keep_logs(self.name);
        }
    }
}
