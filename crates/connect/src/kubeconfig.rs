//! Finds, reads and merges kubeconfig files by kubectl's rules.
//!
//! Gap in kube: it fails if one of the files in `KUBECONFIG` is missing; kubectl skips it.

mod model;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub use self::model::KubeconfigNames;
pub(super) use self::model::{AuthProvider, Cluster, Context, Exec, Kubeconfig, User};
use super::environment::Environment;
use super::error::{ConnectError, in_words};

/// Reads the same kubeconfig as kubectl. An explicit file is the only one, and must exist. Otherwise all
/// existing files in KUBECONFIG are merged. Otherwise it is `~/.kube/config`. If there is no file at all, the
/// result is empty.
pub(super) fn load(
    explicit: Option<&Path>,
    environment: &Environment,
) -> Result<Kubeconfig, ConnectError> {
    if let Some(path) = explicit.filter(|path| !path.as_os_str().is_empty()) {
        return read(path)?.ok_or_else(|| {
            let missing = format!("stat {}: no such file or directory", path.display());
            ConnectError::new(missing).with_hint("check the path in --kubeconfig")
        });
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
    if let Some(list) = environment.get_os("KUBECONFIG") {
        let paths = std::env::split_paths(list);
        return paths.filter(|path| !path.as_os_str().is_empty()).collect();
    }
    // Windows sets only the second one.
    let home = ["HOME", "USERPROFILE"]
        .into_iter()
        .find_map(|name| environment.get_os(name));
    let path = home.map(|home| Path::new(home).join(".kube/config"));
    path.into_iter().collect()
}

/// Reads one file; `None` if it does not exist.
fn read(path: &Path) -> Result<Option<Kubeconfig>, ConnectError> {
    let unusable = |detail: String| {
        let path = path.display();
        ConnectError::new(format!("error loading config file \"{path}\": {detail}"))
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
    let mut config = Kubeconfig::parse(text.trim_start_matches('\u{feff}')).map_err(unusable)?;
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
    fn a_directory_is_no_kubeconfig() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        let expected = format!("error loading config file {path:?}: read {path}: is a directory");
        assert_eq!(current(None, &[("KUBECONFIG", path)]), Err(expected));
    }
}
