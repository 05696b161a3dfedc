//! Processes whose wall clock is wrong or jumps.

use std::path::{Path, PathBuf};

use crate::faketime;

/// If this variable is set, tests that need libfaketime are skipped if it is not installed.
const WITHOUT: &str = "CHAOS_WITHOUT_FAKETIME";

/// The path of libfaketime. `None` if the test is skipped, which is printed.
pub(crate) fn library() -> Option<PathBuf> {
    let found = faketime::library();
    if found.is_none() {
        use std::io::Write as _;
        let hint = "libfaketime is not installed (Debian: apt-get install faketime)";
        assert!(
            std::env::var_os(WITHOUT).is_some(),
            "{hint}; with {WITHOUT}=1 this test is left out"
        );
        // Written to stderr directly, because the test harness hides the output of a test that passes.
        let _nobody_listens = writeln!(
            std::io::stderr(),
            "warning: {hint}: clocks that are wrong were NOT tested"
        );
    }
    found
}

/// The environment of a process with a wrong wall clock, set by `fault`. Its other clocks are right.
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

/// A file with the number of seconds by which a wall clock is ahead. It can be changed at any time.
pub(crate) struct Clock(PathBuf);

impl Clock {
    pub(crate) fn ahead(directory: &Path, seconds: i64) -> Self {
        let clock = Self(directory.join("clock"));
        clock.set(seconds);
        clock
    }

    pub(crate) fn set(&self, ahead: i64) {
        // A rename, because processes read the file all the time.
        let next = self.0.with_extension("next");
        std::fs::write(&next, format!("+{ahead}\n")).expect("a file");
        std::fs::rename(&next, &self.0).expect("a file");
    }

    /// The variables for [`environment`].
    pub(crate) fn fault(&self) -> [(&str, &str); 2] {
        let path = self.0.to_str().expect("a path in text");
        [
            ("FAKETIME_TIMESTAMP_FILE", path),
            ("FAKETIME_NO_CACHE", "1"),
        ]
    }
}
