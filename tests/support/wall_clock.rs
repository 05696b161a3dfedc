//! Processes whose wall clock is wrong, or jumps.

use std::path::{Path, PathBuf};

use crate::faketime;

/// With this variable, tests that need libfaketime are left out where it is not installed.
const WITHOUT: &str = "CHAOS_WITHOUT_FAKETIME";

/// `None` if the test is skipped, which is printed.
pub(crate) fn library() -> Option<PathBuf> {
    let found = faketime::library();
    if found.is_none() {
        use std::io::Write as _;
        let hint = "libfaketime is not installed (Debian: apt-get install faketime)";
        assert!(
            std::env::var_os(WITHOUT).is_some(),
            "{hint}; with {WITHOUT}=1 this test is left out"
        );
        // Past the test harness, which keeps what a test prints that passes.
        let _nobody_listens = writeln!(
            std::io::stderr(),
            "warning: {hint}: clocks that are wrong were NOT tested"
        );
    }
    found
}

/// The environment of a process whose wall clock alone is wrong, as `fault` says.
pub(crate) fn environment<'a>(
    library: &'a Path,
    fault: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let mut variables = vec![
        ("LD_PRELOAD", library.to_str().expect("a path in text")),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ];
    variables.extend(fault);
    variables
}

/// A file that says by how many seconds a wall clock is ahead, and may say something else at any time.
pub(crate) struct Clock(PathBuf);

impl Clock {
    pub(crate) fn ahead(directory: &Path, seconds: i64) -> Self {
        let clock = Self(directory.join("clock"));
        clock.set(seconds);
        clock
    }

    pub(crate) fn set(&self, ahead: i64) {
        // At once: it is read all the time.
        let next = self.0.with_extension("next");
        std::fs::write(&next, format!("+{ahead}\n")).expect("a file");
        std::fs::rename(&next, &self.0).expect("a file");
    }

    /// For [`environment`].
    pub(crate) fn fault(&self) -> [(&str, &str); 2] {
        let path = self.0.to_str().expect("a path in text");
        [
            ("FAKETIME_TIMESTAMP_FILE", path),
            ("FAKETIME_NO_CACHE", "1"),
        ]
    }
}
