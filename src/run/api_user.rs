//! The API user of the caller, which every acquisition names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use chrono::Utc;
use connect::{ApiUser, Environment};
use serde::{Deserialize, Serialize};

use crate::run::session::Session;

/// How many seconds an answer is kept.
const FRESH: i64 = 12 * 3600;

/// What the API server said to the users of one kubeconfig or another.
#[derive(Default, Deserialize, Serialize)]
#[serde(transparent)]
struct Answers(BTreeMap<String, Answer>);

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    api_user: String,
    /// In seconds since 1970.
    at: i64,
}

impl Session<'_> {
    /// Names the API user in acquisitions from now on. If the credentials do not show the name, asks the API server
    /// and keeps its answer in a file. Without an answer, acquisitions have no API user.
    pub(crate) async fn learn_api_user(&self, environment: &Environment) {
        let key = match &self.connection.api_user {
            ApiUser::Known(name) => return self.locks.set_api_user(name),
            ApiUser::Anonymous => return,
            ApiUser::Unknown { key } => key,
        };
        let path = path(environment);
        let mut answers = path.as_deref().map(Answers::read).unwrap_or_default();
        if let Some(answer) = answers.0.get(key) {
            return self.locks.set_api_user(&answer.api_user);
        }
        let user = self.locks.api_user().await.ok();
        let Some(name) = user.and_then(|user| user.username) else {
            return;
        };
        self.locks.set_api_user(&name);
        let answer = Answer {
            api_user: name,
            at: Utc::now().timestamp(),
        };
        answers.0.insert(key.clone(), answer);
        if let Some(path) = path {
            // Ignored: the next command asks again.
            let _ = answers.write(&path);
        }
    }
}

/// In kubectl's cache directory.
fn path(environment: &Environment) -> Option<PathBuf> {
    let directory = match environment.get_os("KUBECACHEDIR") {
        Some(directory) => PathBuf::from(directory),
        None => Path::new(environment.get_os("HOME")?).join(".kube/cache"),
    };
    Some(directory.join("kubectl-maint-users.json"))
}

impl Answers {
    /// The answers that are recent enough.
    fn read(path: &Path) -> Self {
        let text = fs::read(path).unwrap_or_default();
        let mut answers: Self = serde_json::from_slice(&text).unwrap_or_default();
        let oldest = Utc::now().timestamp() - FRESH;
        answers.0.retain(|_, answer| answer.at > oldest);
        answers
    }

    fn write(&self, path: &Path) -> std::io::Result<()> {
        let directory = path.parent().unwrap_or(path);
        fs::create_dir_all(directory)?;
        let unfinished = path.with_extension(std::process::id().to_string());
        fs::write(&unfinished, serde_json::to_vec(self)?)?;
        fs::rename(unfinished, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_kept_for_hours_and_a_broken_file_is_none() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache/users.json");
        assert!(Answers::read(&path).0.is_empty());
        let answer = |seconds| Answer {
            api_user: "alice".to_owned(),
            at: Utc::now().timestamp() - seconds,
        };
        let answers = [("new", answer(60)), ("old", answer(FRESH + 60))];
        let answers = answers.map(|(key, answer)| (key.to_owned(), answer));
        Answers(BTreeMap::from(answers))
            .write(&path)
            .expect("it is written");
        let read = Answers::read(&path);
        let read: Vec<_> = read
            .0
            .iter()
            .map(|(key, answer)| (&**key, &*answer.api_user))
            .collect();
        assert_eq!(read, [("new", "alice")]);
        fs::write(&path, "{").expect("it is written");
        assert!(Answers::read(&path).0.is_empty());
    }
}
