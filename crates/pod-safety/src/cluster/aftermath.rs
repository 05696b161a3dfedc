//! What became of a pod after its deletion.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::ApiError;
use serde::Serialize;

use super::Reader;
use crate::facts::PodSight;

/// How often is looked.
const EVERY: Duration = Duration::from_millis(250);

/// What is there now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "outcome")]
pub enum Aftermath {
    /// Nothing of that name.
    Gone,
    /// The object itself: its finalizers hold it.
    Held {
        /// By whom.
        finalizers: Vec<String>,
    },
    /// Another pod of that name.
    Replaced {
        /// Its uid.
        uid: String,
        /// Its node; `None`: it has none yet.
        node: Option<String>,
    },
}

impl Aftermath {
    /// What `now` (`None`: nothing) is to the pod of `uid`.
    #[must_use]
    pub fn of(now: Option<&Pod>, uid: &str) -> Self {
        let Some(pod) = now else {
            return Self::Gone;
        };
        let sight = PodSight::of(pod);
        if sight.uid == uid {
            return Self::Held {
                finalizers: sight.finalizers,
            };
        }
        Self::Replaced {
            uid: sight.uid,
            node: Some(sight.node).filter(|node| !node.is_empty()),
        }
    }

    /// Whether there is nothing more to wait for: a replacement has a node, or none comes before the
    /// finalizers are gone.
    fn is_final(&self) -> bool {
        match self {
            Self::Gone => false,
            Self::Held { finalizers } => !finalizers.is_empty(),
            Self::Replaced { node, .. } => node.is_some(),
        }
    }
}

impl Reader {
    /// What became of `pod`: looked at now and, where a replacement of the same name is `expected`,
    /// until it has a node or finalizers hold the old one, for at most `timeout`.
    ///
    /// # Errors
    /// Where it can't be read.
    pub async fn aftermath(
        &self,
        pod: &PodSight,
        expected: bool,
        timeout: Duration,
    ) -> Result<Aftermath, ApiError> {
        let limit = tokio::time::sleep(timeout);
        tokio::pin!(limit);
        loop {
            let now = self.pod(&pod.namespace, &pod.name).await?;
            let aftermath = Aftermath::of(now.as_ref(), &pod.uid);
            if !expected || aftermath.is_final() || limit.is_elapsed() {
                return Ok(aftermath);
            }
            tokio::select! {
                () = &mut limit => {}
                () = tokio::time::sleep(EVERY) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_there_tells_what_happened() {
        let pod = |uid, node: Option<&str>, finalizers: &[&str]| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"name": "web-0", "uid": uid, "finalizers": finalizers},
                "spec": {"containers": [], "nodeName": node},
            }))
            .expect("a pod")
        };
        assert_eq!(Aftermath::of(None, "u-1"), Aftermath::Gone);
        let held = Aftermath::of(Some(&pod("u-1", Some("worker-1"), &["a/b"])), "u-1");
        assert!(held.is_final());
        let finalizers = vec!["a/b".to_owned()];
        assert_eq!(held, Aftermath::Held { finalizers });
        let replaced = Aftermath::of(Some(&pod("u-2", Some("worker-2"), &[])), "u-1");
        assert!(replaced.is_final() && !Aftermath::Gone.is_final());
        assert!(!Aftermath::of(Some(&pod("u-2", None, &[])), "u-1").is_final());
    }
}
