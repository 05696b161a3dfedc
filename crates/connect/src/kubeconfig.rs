//! Finds, reads and merges kubeconfig files by kubectl's rules.
//!
//! Gap in kube: it fails if one of the files in `KUBECONFIG` is missing; kubectl skips it. It does not expand
//! `~`.

mod model;

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub use self::model::KubeconfigNames;
pub(super) use self::model::{AuthProvider, Cluster, Context, Exec, Kubeconfig, User};
use super::environment::Environment;
use super::error::{ConnectError, in_words};
use super::platform::IS_WINDOWS;

/// The path of the kubeconfig in the user's home directory.
const KUBECONFIG: &str = ".kube/config";

/// Reads the same kubeconfig as kubectl. An explicit file is the only one, and must exist. Otherwise all
/// existing files in KUBECONFIG are merged. Otherwise it is `~/.kube/config`. If there is no file at all, the
/// result is empty.
pub(super) fn load(
    explicit: Option<&Path>,
    environment: &Environment,
) -> Result<Kubeconfig, ConnectError> {
    if let Some(path) = explicit.filter(|path| !path.as_os_str().is_empty()) {
        let path = expand_home(path, environment);
        return match read(&path)? {
            Some(config) => Ok(config),
            None => Err(ConnectError::KubeconfigMissing { path }),
        };
    }
    let mut merged = Kubeconfig::default();
    for path in files(environment) {
        if let Some(config) = read(&path)? {
            merged.merge(config);
        }
    }
    Ok(merged)
}

fn files(environment: &Environment) -> Vec<PathBuf> {
    let Some(list) = environment.get_os("KUBECONFIG") else {
        return home(environment)
            .map(|home| home.join(KUBECONFIG))
            .into_iter()
            .collect();
    };
    let paths = std::env::split_paths(list).filter(|path| !path.as_os_str().is_empty());
    paths.map(|path| expand_home(&path, environment)).collect()
}

/// Replaces a leading `~`. A shell does not expand it after `=` and `:`.
fn expand_home(path: &Path, environment: &Environment) -> PathBuf {
    match (path.strip_prefix("~"), home(environment)) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

/// The user's home directory, as kubectl finds it.
fn home(environment: &Environment) -> Option<PathBuf> {
    match IS_WINDOWS {
        true => home_on_windows(environment, look),
        false => environment.get_os("HOME").map(PathBuf::from),
    }
}

/// What exists at a path on Windows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Nothing,
    /// A file, or a directory that is marked read-only.
    Something,
    WritableDirectory,
}

fn look(path: &Path) -> Found {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() && !found.permissions().readonly() => Found::WritableDirectory,
        Ok(_) => Found::Something,
        Err(_) => Found::Nothing,
    }
}

/// The first directory with a kubeconfig. Otherwise the first writable directory, the first that exists, or
/// the first that is set. The two lists have different orders, as in client-go.
fn home_on_windows(environment: &Environment, look: impl Fn(&Path) -> Found) -> Option<PathBuf> {
    let variable = |name| environment.get_os(name).map(PathBuf::from);
    let home = variable("HOME");
    let profile = variable("USERPROFILE");
    let drive = environment
        .get_os("HOMEDRIVE")
        .zip(environment.get_os("HOMEPATH"))
        .map(|(drive, path)| PathBuf::from([drive, path].join(OsStr::new(""))));
    let by_kubeconfig = [&home, &drive, &profile].into_iter().flatten();
    let has_kubeconfig = |home: &&PathBuf| look(&home.join(KUBECONFIG)) > Found::Nothing;
    if let Some(home) = { by_kubeconfig }.find(has_kubeconfig) {
        return Some(home.clone());
    }
    let rest = [home, profile, drive].into_iter().flatten();
    // `max_by_key` returns the last of the best ones, so the order is reversed to get the first.
    rest.rev().max_by_key(|home| look(home))
}

/// Reads one file; `None` if it does not exist.
fn read(path: &Path) -> Result<Option<Kubeconfig>, ConnectError> {
    let unusable = |detail| ConnectError::Kubeconfig {
        path: path.to_owned(),
        detail,
    };
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(err) if err.kind() == ErrorKind::NotFound => return Ok(None),
        Err(err) => {
            return Err(unusable(format!(
                "read {}: {}",
                path.display(),
                in_words(&err)
            )));
        }
    };
    let mut config = Kubeconfig::parse(text.trim_start_matches('\u{feff}'))
        .map_err(|detail| unusable(format!("yaml: {detail}")))?;
    if let Some(directory) = std::path::absolute(path)
        .ok()
        .as_deref()
        .and_then(Path::parent)
    {
        config.resolve_paths(directory);
    }
    Ok(Some(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(directory: &Path, name: &str, text: &str) -> PathBuf {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn current(
        explicit: Option<&str>,
        variables: &[(&str, &str)],
    ) -> Result<Option<String>, String> {
        let environment = Environment::of_variables(variables.iter().copied());
        match load(explicit.map(Path::new), &environment) {
            Ok(config) => Ok(config.current_context),
            Err(err) => Err(err.to_string()),
        }
    }

    #[test]
    fn kubeconfig_files_are_found_like_kubectl_does() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().to_str().unwrap();
        write(directory.path(), ".kube/config", "current-context: home");
        let one = write(directory.path(), "one", "current-context: one");
        let none = write(directory.path(), "none", "current-context: ''");
        let (one, none) = (one.to_str().unwrap(), none.to_str().unwrap());
        let missing = directory.path().join("missing");
        let missing = missing.to_str().unwrap();

        let context = |name: &str| Ok(Some(name.to_owned()));
        assert_eq!(current(None, &[("HOME", home)]), context("home"));
        assert_eq!(
            current(None, &[("HOME", home), ("KUBECONFIG", "")]),
            context("home")
        );
        assert_eq!(
            current(None, &[("HOME", home), ("KUBECONFIG", one)]),
            context("one")
        );
        assert_eq!(current(Some(one), &[("HOME", home)]), context("one"));
        assert_eq!(current(Some("~/one"), &[("HOME", home)]), context("one"));
        let list = format!("{missing}:{none}::{one}");
        assert_eq!(current(None, &[("KUBECONFIG", &list)]), context("one"));
        assert_eq!(
            current(None, &[("HOME", home), ("KUBECONFIG", missing)]),
            Ok(None)
        );
        assert_eq!(current(None, &[]), Ok(None));
        assert_eq!(
            current(Some(missing), &[]),
            Err(format!("stat {missing}: no such file or directory"))
        );
    }

    #[test]
    fn the_directory_of_the_user_is_found_on_windows_like_kubectl_does() {
        let all = [
            ("HOME", "/home"),
            ("HOMEDRIVE", "/drive"),
            ("HOMEPATH", "/path"),
            ("USERPROFILE", "/profile"),
        ];
        let (home, drive, profile) = (Some("/home"), Some("/drive/path"), Some("/profile"));
        let kubeconfig = |home: &str| format!("{home}/.kube/config");
        let kubeconfigs = ["/home", "/drive/path", "/profile"].map(kubeconfig);
        let kubeconfigs = kubeconfigs.each_ref().map(String::as_str);
        let home_of = |variables: &[(&str, &str)], exist: &[&str], writable: &[&str]| {
            let environment = Environment::of_variables(variables.iter().copied());
            let look = |path: &Path| {
                let is_in = |paths: &[&str]| paths.iter().any(|known| Path::new(known) == path);
                match (is_in(writable), is_in(exist)) {
                    (true, _) => Found::WritableDirectory,
                    (false, true) => Found::Something,
                    (false, false) => Found::Nothing,
                }
            };
            home_on_windows(&environment, look)
        };
        for (variables, exist, writable, expected) in [
            (&all[..], &kubeconfigs[..], &["/profile"][..], home),
            (&all, &kubeconfigs[1..], &["/home"], drive),
            (&all, &kubeconfigs[2..], &["/home"], profile),
            (&all, &[], &["/home", "/drive/path", "/profile"], home),
            (&all, &["/home"], &["/drive/path", "/profile"], profile),
            (&all, &["/home", "/profile"], &["/drive/path"], drive),
            (&all, &["/drive/path", "/profile"], &[], profile),
            (&all, &["/drive/path"], &[], drive),
            (&all, &[], &[], home),
            (&all[1..], &[], &[], profile),
            (&all[1..3], &[], &[], drive),
            (&all[1..2], &kubeconfigs, &[], None),
            (&all[2..3], &kubeconfigs, &[], None),
            (&[("HOME", ""), all[3]], &[], &[], profile),
            (&[], &[], &[], None),
        ] {
            let found = home_of(variables, exist, writable);
            let expected = expected.map(PathBuf::from);
            assert_eq!(found, expected, "{variables:?} {exist:?} {writable:?}");
        }
    }

    #[test]
    fn a_directory_is_no_kubeconfig() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        let expected = format!("error loading config file {path:?}: read {path}: is a directory");
        assert_eq!(current(None, &[("KUBECONFIG", path)]), Err(expected));
    }
}
