//! Which file a program's name stands for.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::program_files::find;

/// The program to run for `name`: the file with one of the extensions in `PATHEXT`, in `PATH` if `name` is no path.
/// cmd and kubectl run batch files (`.cmd`, `.bat`) like this, and Windows itself only finds `.exe`. If there is none, it is
/// `name`. This reads directories, which may take long.
#[must_use]
pub fn find_program(name: &OsStr) -> OsString {
    let (path, extensions) = (std::env::var_os("PATH"), std::env::var_os("PATHEXT"));
    let found = find(name, path.as_deref(), extensions.as_deref(), Path::is_file);
    found.map_or_else(|| name.to_owned(), Into::into)
}
