//! Finds the file of a program by its name.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::program_files::find;

/// The program to run for `name`: a file with one of the extensions in `PATHEXT`, searched in `PATH` if
/// `name` is not a path. If there is none, it is `name`. cmd and kubectl find batch files (`.cmd`, `.bat`) in
/// the same way; Windows itself only finds `.exe`. Reads directories, which may be slow.
#[must_use]
pub fn find_program(name: &OsStr) -> OsString {
    let (path, extensions) = (std::env::var_os("PATH"), std::env::var_os("PATHEXT"));
    let found = find(name, path.as_deref(), extensions.as_deref(), Path::is_file);
    found.map_or_else(|| name.to_owned(), Into::into)
}
