//! libfaketime, which gives a process its own wall clock.

use std::path::{Path, PathBuf};

/// The path of the library in common Linux distributions, or `None` if it is not installed.
pub(crate) fn library() -> Option<PathBuf> {
    [
        "lib/x86_64-linux-gnu",
        "lib/aarch64-linux-gnu",
        "lib64",
        "lib",
    ]
    .map(|place| Path::new("/usr").join(place))
    .map(|place| place.join("faketime/libfaketimeMT.so.1"))
    .into_iter()
    .find(|library| library.exists())
}
