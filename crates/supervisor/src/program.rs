//! Finds the file of a program by its name.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The program to run for `name`. On Windows, this is a file with one of the extensions in `PATHEXT`, searched
/// in `PATH` if `name` is not a path: cmd and kubectl find batch files (`.cmd`, `.bat`) in the same way, but
/// Windows itself only finds `.exe`. This reads directories, which may be slow. If there is no such file, and
/// on other systems, it is `name`.
#[must_use]
pub fn find_program(name: &OsStr) -> OsString {
    let (path, extensions) = (std::env::var_os("PATH"), std::env::var_os("PATHEXT"));
    let found = cfg!(windows)
        .then(|| find(name, path.as_deref(), extensions.as_deref(), Path::is_file))
        .flatten();
    found.map_or_else(|| name.to_owned(), Into::into)
}

/// The extensions to use if `PATHEXT` is not set.
const EXTENSIONS: &str = ".com;.exe;.bat;.cmd";

/// Finds the file on Windows by the rules of Go's `exec.LookPath`, but not in the current directory.
fn find(
    name: &OsStr,
    path: Option<&OsStr>,
    extensions: Option<&OsStr>,
    is_file: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let extensions = extensions.filter(|extensions| !extensions.is_empty());
    let extensions = extensions.map_or(EXTENSIONS.into(), OsStr::to_string_lossy);
    let extensions = || {
        extensions
            .split(';')
            .filter(|extension| !extension.is_empty())
    };
    let in_directory = |directory: &Path| {
        let file = directory.join(name);
        // A name with an extension may be complete, or the file may have a second extension.
        let itself = file.extension().map(|_| file.clone());
        let with_extensions = extensions().map(|extension| {
            let mut file = file.clone().into_os_string();
            file.push(".");
            file.push(extension.trim_start_matches('.').to_lowercase());
            PathBuf::from(file)
        });
        itself
            .into_iter()
            .chain(with_extensions)
            .find(|file| is_file(file))
    };
    if name
        .as_encoded_bytes()
        .iter()
        .any(|byte| br":\/".contains(byte))
    {
        return in_directory(Path::new(""));
    }
    std::env::split_paths(path?)
        .filter(|directory| directory.is_absolute())
        .find_map(|directory| in_directory(&directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_its_extension_in_the_order_of_windows() {
        let files = [
            "/one/login.cmd",
            "/one/both.exe",
            "/one/both.cmd",
            "/one/tool.v2.exe",
            "/one/plain",
            "/one/script.sh",
            "/two/login.exe",
            "/two/run.bat",
            "relative/near.exe",
            "./here.exe",
        ];
        let path = std::env::join_paths(["", "relative", "/one", "/two"]).expect("a path");
        let find = |name: &str, extensions: Option<&str>| {
            let is_file = |file: &Path| files.iter().any(|known| Path::new(known) == file);
            let found = find(
                name.as_ref(),
                Some(&path),
                extensions.map(OsStr::new),
                is_file,
            )?;
            Some(found.to_str().expect("text").to_owned())
        };
        for (name, expected) in [
            ("login", Some("/one/login.cmd")),
            ("login.exe", Some("/two/login.exe")),
            ("both", Some("/one/both.exe")),
            ("tool.v2", Some("/one/tool.v2.exe")),
            ("script.sh", Some("/one/script.sh")),
            ("run", Some("/two/run.bat")),
            ("plain", None),
            ("near", None),
            ("here", None),
            ("./here", Some("./here.exe")),
            ("relative/near", Some("relative/near.exe")),
            ("/two/run", Some("/two/run.bat")),
            ("/two/nothing", None),
        ] {
            assert_eq!(find(name, None).as_deref(), expected, "{name}");
            assert_eq!(find(name, Some("")).as_deref(), expected, "{name}");
        }
        let extensions = Some(".CMD;;EXE");
        assert_eq!(find("both", extensions).as_deref(), Some("/one/both.cmd"));
        assert_eq!(
            find("login.exe", extensions).as_deref(),
            Some("/two/login.exe")
        );
        assert_eq!(
            find("tool.v2", extensions).as_deref(),
            Some("/one/tool.v2.exe")
        );
        assert_eq!(find("run", extensions), None);
    }
}
