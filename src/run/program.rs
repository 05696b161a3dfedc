//! Checks that a program can be run, before anything is written for it.

use std::ffi::OsStr;
use std::path::is_separator;

use crate::platform::is_executable;

use crate::error::ProgramError;

/// Where to look for programs if `PATH` is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Checks that `program` can be run: a path, or a name that is looked up in `path`, the value of `PATH`.
///
/// # Errors
/// If it does not exist, or can't be executed.
pub(crate) fn check(program: &OsStr, path: Option<&OsStr>) -> Result<(), ProgramError> {
    let is_path = program
        .as_encoded_bytes()
        .iter()
        .any(|&byte| is_separator(char::from(byte)));
    let directories = match is_path {
        true => OsStr::new("."),
        false => path.unwrap_or(OsStr::new(DEFAULT_PATH)),
    };
    let mut is_there = false;
    for directory in std::env::split_paths(directories) {
        let file = directory.join(program);
        if is_executable(&file) {
            return Ok(());
        }
        is_there |= file.exists();
    }
    let program = program.to_string_lossy().into_owned();
    Err(match is_there {
        true => ProgramError::NotExecutable(program),
        false => ProgramError::NotFound(program),
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{File, Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::*;
    use crate::exit::Code;

    #[test]
    fn a_program_is_a_file_that_may_be_executed() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str, mode| {
            let path = directory.path().join(name);
            File::create(&path).expect("a file");
            set_permissions(&path, Permissions::from_mode(mode)).expect("permissions");
        };
        file("hook", 0o755);
        file("text", 0o644);
        std::fs::create_dir(directory.path().join("folder")).expect("a folder");
        let paths = [Path::new("/nowhere"), directory.path()];
        let path = std::env::join_paths(paths).expect("paths");
        let code = |program: &OsStr| match check(program, Some(&path)) {
            Ok(()) => Code::DONE,
            Err(error) => Code::of(&error.into(), None),
        };
        for (name, expected) in [
            ("hook", Code::DONE),
            ("text", Code::NOT_EXECUTABLE),
            ("folder", Code::NOT_EXECUTABLE),
            ("nope", Code::NOT_FOUND),
        ] {
            assert_eq!(code(name.as_ref()), expected, "{name}");
            let path = directory.path().join(name);
            assert_eq!(code(path.as_os_str()), expected, "{name}");
        }
    }
}
