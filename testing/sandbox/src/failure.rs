//! Refusals in the words of the API server: a `Status` with code, reason, message and causes.

use serde_json::{Map, Value, json};

use crate::cause::Cause;
use crate::resource::Resource;

/// An answer that is an error.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    details: Option<Map<String, Value>>,
}

impl Failure {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
        }
    }

    /// Some answers have empty details.
    fn empty_details(mut self) -> Self {
        self.details = Some(Map::new());
        self
    }

    fn detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        if value.as_str() != Some("") {
            let details = self.details.get_or_insert_default();
            details.insert(key.to_owned(), value);
        }
        self
    }

    fn about(self, name: &str, resource: &Resource) -> Self {
        self.detail("name", name)
            .detail("group", resource.group.as_str())
            .detail("kind", resource.plural.as_str())
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} not found", resource.qualified_plural());
        Self::new(404, "NotFound", message).about(name, resource)
    }

    /// A path of a resource that the server does not have.
    pub(crate) fn unknown_path() -> Self {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
        .empty_details()
    }

    /// A path without any API below it. The answer is plain text.
    pub(crate) fn no_such_page() -> Self {
        Self::new(404, "", "404 page not found\n")
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .empty_details()
    }

    pub(crate) fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", resource.qualified_plural());
        Self::new(409, "AlreadyExists", message).about(name, resource)
    }

    pub(crate) fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: {why}",
            resource.qualified_plural()
        );
        Self::new(409, "Conflict", message).about(name, resource)
    }

    /// An apply with fields that other managers own with other values.
    pub(crate) fn apply_conflict(resource: &Resource, name: &str, causes: Vec<Value>) -> Self {
        let count = causes.len();
        let s = if count == 1 { "" } else { "s" };
        let message = format!("Apply failed with {count} conflict{s}");
        Self::new(409, "Conflict", message)
            .about(name, resource)
            .detail("causes", causes)
    }

    /// The conflict of a write for another version of the object.
    pub(crate) fn outdated(resource: &Resource, name: &str) -> Self {
        Self::conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// A DELETE whose preconditions do not hold. Here, the server names the kind, not the plural.
    pub(crate) fn precondition(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: {why}",
            resource.qualified_kind()
        );
        Self::new(409, "Conflict", message)
            .detail("name", name)
            .detail("group", resource.group.as_str())
            .detail("kind", resource.kind.as_str())
    }

    pub(crate) fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        let message = if name.is_empty() {
            format!("{} is forbidden: {why}", resource.qualified_plural())
        } else {
            format!(
                "{} {name:?} is forbidden: {why}",
                resource.qualified_plural()
            )
        };
        Self::new(403, "Forbidden", message).about(name, resource)
    }

    /// A create in a namespace that is being deleted.
    pub(crate) fn terminating(resource: &Resource, name: &str, namespace: &str) -> Self {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        Self::forbidden(resource, name, &why).detail(
            "causes",
            json!([{
                "reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace",
            }]),
        )
    }

    /// An object that breaks the rules of its type.
    pub(crate) fn invalid(resource: &Resource, name: &str, causes: &[Cause]) -> Self {
        Self::invalid_kind(
            &resource.qualified_kind(),
            &resource.group,
            &resource.kind,
            name,
            causes,
        )
    }

    /// A PUT or PATCH without a resource version, for a type that requires one. The server writes
    /// the plural instead of the kind.
    pub(crate) fn version_required(resource: &Resource, name: &str) -> Self {
        Self::invalid_kind(
            &resource.qualified_plural(),
            &resource.group,
            &resource.plural,
            name,
            &[Cause::invalid(
                "metadata.resourceVersion",
                "0",
                "must be specified for an update",
            )],
        )
    }

    /// A patch whose result can't be read as an object of the type.
    pub(crate) fn unreadable_patch(patched: &Value, why: &str) -> Self {
        let shown = format!("{:?}", patched.to_string());
        Self::invalid_kind("", "", "", "", &[Cause::invalid("patch", &shown, why)])
    }

    /// A GET or LIST with a resource version that is not a number.
    pub(crate) fn unreadable_version(version: &str) -> Self {
        Self::bad_request(format!(
            "invalid resource version: {}",
            Self::unreadable_watch_version(version).message
        ))
    }

    /// A watch with a resource version that is not a number.
    pub(crate) fn unreadable_watch_version(version: &str) -> Self {
        Self::unexplained(&format!(
            "resourceVersion: Invalid value: {version:?}: strconv.ParseUint: parsing {version:?}: invalid syntax"
        ))
    }

    /// An error without a reason.
    pub(crate) fn unexplained(message: &str) -> Self {
        Self::new(500, "", message)
    }

    /// The server's answer that contains the message of its parser.
    pub(crate) fn unparsable_number(text: &str) -> Self {
        Self::unexplained(&format!(
            "strconv.ParseUint: parsing {text:?}: invalid syntax"
        ))
    }

    /// A JSON patch whose operations can't be applied.
    pub(crate) fn failed_operation() -> Self {
        Self::new(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        )
        .empty_details()
    }

    /// A `dryRun` other than `All`.
    pub(crate) fn invalid_options(kind: &str, dry_run: &[&str]) -> Self {
        let shown = serde_json::to_string(dry_run).unwrap_or_default();
        let cause = Cause::unsupported("dryRun", &shown, "\"All\"");
        Self::invalid_kind(
            &format!("{kind}.meta.k8s.io"),
            "meta.k8s.io",
            kind,
            "",
            &[cause],
        )
    }

    /// A `propagationPolicy` that doesn't exist.
    pub(crate) fn invalid_propagation(policy: &str) -> Self {
        let cause = Cause::unsupported(
            "propagationPolicy",
            &format!("{policy:?}"),
            "\"Foreground\", \"Background\", \"Orphan\", \"nil\"",
        );
        Self::invalid_kind(
            "DeleteOptions.meta.k8s.io",
            "meta.k8s.io",
            "DeleteOptions",
            "",
            &[cause],
        )
    }

    /// Options of a list or watch that contradict each other.
    pub(crate) fn invalid_list_options(causes: &[Cause]) -> Self {
        Self::invalid_kind(
            "ListOptions.meta.k8s.io",
            "meta.k8s.io",
            "ListOptions",
            "",
            causes,
        )
    }

    fn invalid_kind(shown: &str, group: &str, kind: &str, name: &str, causes: &[Cause]) -> Self {
        let each: Vec<String> = causes.iter().map(ToString::to_string).collect();
        let why = match each.as_slice() {
            [] => String::new(),
            [first, others @ ..] if others.iter().all(|other| other == first) => {
                format!(": {first}")
            }
            several => format!(": [{}]", several.join(", ")),
        };
        let list: Vec<Value> = causes.iter().map(Cause::to_json).collect();
        Self::new(422, "Invalid", format!("{shown} {name:?} is invalid{why}"))
            .detail("name", name)
            .detail("group", group)
            .detail("kind", kind)
            .detail("causes", list)
    }

    /// A position in the history that is no longer kept.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// A resource version that the server has not reached yet.
    pub(crate) fn too_large_version(requested: u64, current: u64) -> Self {
        Self::new(
            504,
            "Timeout",
            format!("Timeout: Too large resource version: {requested}, current: {current}"),
        )
        .detail(
            "causes",
            json!([{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]),
        )
        .detail("retryAfterSeconds", 1)
    }

    pub(crate) fn unsupported_media_type(supported: &str) -> Self {
        Self::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {supported}"
            ),
        )
    }

    /// A patch with an unknown content type.
    pub(crate) fn unsupported_patch() -> Self {
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type").empty_details()
    }

    pub(crate) fn not_acceptable() -> Self {
        Self::new(
            406,
            "NotAcceptable",
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )
        .empty_details()
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        Self::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {limit}"),
        )
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::new(
            500,
            "InternalError",
            format!("Internal error occurred: {message}"),
        )
        .detail("causes", json!([{"message": message}]))
    }

    /// The `Status` object of the answer.
    pub(crate) fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        });
        if let Some(details) = &self.details {
            status["details"] = details.clone().into();
        }
        if self.reason.is_empty() {
            status.as_object_mut().map(|status| status.remove("reason"));
        }
        status
    }
}
