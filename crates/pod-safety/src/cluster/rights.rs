//! Asks the API server which permissions the user has.

use http::Method;
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use maintenance_lease::Call;
use serde_json::json;

use super::Reader;
use crate::known::Known;

impl Reader {
    /// Whether the user may `verb` a resource in a namespace or, with `None`, cluster-wide. The resource has
    /// its group, as in `leases.coordination.k8s.io`. Resources of the core group have none, as in
    /// `pods/status`.
    pub async fn may(&self, verb: &str, resource: &str, namespace: Option<&str>) -> Known<bool> {
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "verb": verb,
                "resource": resource,
                "subresource": part,
                "group": group,
                "namespace": namespace.unwrap_or_default(),
            }},
        });
        let call = Call::write(
            Method::POST,
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned(),
            "application/json",
            &review,
        );
        let answer = self.send::<SelfSubjectAccessReview>(&call).await;
        Known::of(answer, || "create selfsubjectaccessreviews".to_owned())
            .map(|review| review.status.is_some_and(|status| status.allowed))
    }
}
