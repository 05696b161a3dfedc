//! What fencing reads of a node, and its one write.

use futures::future::{join, join_all};
use http::Method;
use k8s_openapi::api::core::v1::{Node, PersistentVolume};
use maintenance_lease::{Accept, ApiError, Call, escape};
use serde::Deserialize;
use serde_json::Value;

use super::Reader;
use crate::constants::{HEARTBEATS, MEDIK8S};
use crate::facts::Remediation;
use crate::fencing::Remains;
use crate::fencing::attempt::{self, Attempt};
use crate::fencing::record::ANNOTATION;
use crate::known::Known;
use crate::node::Signs;
use crate::taint::{OutOfService, taints};

/// A Node, with what is seen of it elsewhere.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// As the server sent it: what a write is based on.
    pub raw: Value,
    /// The same, as far as its type knows it.
    pub node: Node,
    /// Its signs of life, and its record.
    pub signs: Signs,
    /// Who remediates it by themselves, if anybody.
    pub remediation: Known<Option<String>>,
}

impl Evidence {
    /// The Node's uid.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.node.metadata.uid.as_deref().unwrap_or_default()
    }

    /// What its kubelet last said of the kernel that runs; empty where it never did.
    #[must_use]
    pub fn boot_id(&self) -> &str {
        let status = self.node.status.as_ref();
        let info = status.and_then(|status| status.node_info.as_ref());
        info.map_or("", |info| info.boot_id.as_str())
    }

    /// It carries our annotation, be it a record or not.
    #[must_use]
    pub fn is_annotated(&self) -> bool {
        self.annotation(ANNOTATION).is_some()
    }

    /// The hook that was announced on it last, if that was not taken back.
    #[must_use]
    pub fn attempt(&self) -> Option<Attempt> {
        Attempt::parse(self.annotation(attempt::ANNOTATION)?)
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        let annotations = self.node.metadata.annotations.as_ref()?;
        annotations.get(name).map(String::as_str)
    }
}

impl Reader {
    /// What is seen of a node; `None` where there is no such Node.
    ///
    /// # Errors
    /// Where the Node can't be read. Anything else that can't is unknown.
    pub async fn evidence(&self, name: &str) -> Result<Option<Evidence>, ApiError> {
        let path = format!("/api/v1/nodes/{}", escape(name));
        let (raw, (heartbeat, remediation)) = join(
            self.get::<Value>(&path),
            join(self.heartbeat(name), self.remediation(name)),
        )
        .await;
        let Some(raw) = raw? else {
            return Ok(None);
        };
        let node =
            Node::deserialize(&raw).map_err(|error| ApiError::Unreadable(error.to_string()))?;
        let heartbeat = Known::of(heartbeat, || format!("get leases in {HEARTBEATS}"));
        let remediation = remediated(&node, remediation).map(|remediation| match remediation {
            Remediation::Running { holder } | Remediation::Tainted { taint: holder } => {
                Some(holder)
            }
            Remediation::None => None,
        });
        Ok(Some(Evidence {
            signs: Signs::of(&node, heartbeat),
            remediation,
            raw,
            node,
        }))
    }

    /// What is left of a node that has this out-of-service `taint`.
    ///
    /// # Errors
    /// Where pods or volume attachments can't be listed. Of volumes that can't be read it is told that they
    /// may stay.
    pub async fn remains(&self, node: &str, taint: &OutOfService) -> Result<Remains, ApiError> {
        let on_node = format!("fieldSelector=spec.nodeName%3D{}", escape(node));
        let (pods, attachments) = join(
            self.list("/api/v1/pods", &on_node),
            self.list("/apis/storage.k8s.io/v1/volumeattachments", ""),
        )
        .await;
        let (pods, attachments) = (pods?, attachments?);
        let open = Remains::open(node, taint, &pods, &attachments);
        let claims = join_all(open.into_iter().map(|volume| self.claim_of(volume))).await;
        let claims = claims.into_iter().collect();
        Ok(Remains::of(node, taint, &pods, &attachments, &claims))
    }

    /// The volume's name, and the claim that it is of.
    async fn claim_of(&self, volume: &str) -> (String, Known<Option<(String, String)>>) {
        let path = format!("/api/v1/persistentvolumes/{}", escape(volume));
        let read = self.get::<PersistentVolume>(&path).await;
        let read = Known::of(read, || "get persistentvolumes".to_owned());
        let claim = read.map(|volume| {
            let claim = volume?.spec?.claim_ref?;
            claim.namespace.zip(claim.name)
        });
        (volume.to_owned(), claim)
    }

    /// Applies a merge patch to a Node.
    ///
    /// # Errors
    /// Where the server refuses or fails, or nothing comes in time.
    ///
    /// # Caveats
    /// Where [`ApiError::leaves_writes_unknown`], it may have taken effect, or may yet.
    pub async fn patch_node(
        &self,
        name: &str,
        patch: &Value,
        field_manager: &str,
        dry_run: bool,
    ) -> Result<(), ApiError> {
        let dry_run = if dry_run { "&dryRun=All" } else { "" };
        let call = Call {
            method: Method::PATCH,
            path: format!(
                "/api/v1/nodes/{}?fieldManager={}{dry_run}",
                escape(name),
                escape(field_manager)
            ),
            accept: Accept::Json,
            body: Some((
                "application/merge-patch+json",
                patch.to_string().into_bytes(),
            )),
        };
        self.requests().call(&call).await.map(drop)
    }
}

/// Who is at work on `node`, by its taint or by its Lease.
pub(super) fn remediated(node: &Node, by_lease: Known<Remediation>) -> Known<Remediation> {
    match by_taint(node) {
        Some(taint) => Known::Yes(Remediation::Tainted { taint }),
        None => by_lease,
    }
}

/// The taint by which one of medik8s' operators says that it is at work.
fn by_taint(node: &Node) -> Option<String> {
    let taint = taints(node).iter().find(|taint| is_medik8s(&taint.key))?;
    Some(match &taint.value {
        Some(value) => format!("{}={value}", taint.key),
        None => taint.key.clone(),
    })
}

fn is_medik8s(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else {
        return false;
    };
    let above = domain.strip_suffix(MEDIK8S);
    above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_of_medik8s_are_in_its_domain_or_below() {
        for (key, is_it) in [
            ("medik8s.io/remediation", true),
            ("medik8s.io/drain", true),
            ("remediation.medik8s.io/fence-agents-remediation", true),
            ("notmedik8s.io/remediation", false),
            ("medik8s.io", false),
            ("example.com/medik8s.io", false),
        ] {
            assert_eq!(is_medik8s(key), is_it, "{key}");
        }
    }
}
