//! Finds the target of a request, by its path and method.

use std::sync::Arc;

use http::Method;
use percent_encoding::percent_decode_str;

use crate::failure::Failure;
use crate::resource::{Catalog, Resource};

/// The target of a request.
#[derive(Clone, Debug)]
pub(crate) enum Route {
    /// `/readyz` and similar paths.
    Health,
    /// `/version`.
    Version,
    /// `/api`, `/apis` and the lists of types below them.
    Discovery(Vec<String>),
    /// `/openapi/v3` and the documents below it.
    OpenApi(Vec<String>),
    /// A review of the caller's own rights: every user has all rights.
    AccessReview { kind: &'static str },
    /// A review of the caller's identity.
    SubjectReview,
    /// One object or a collection.
    Objects(Target),
}

/// One object, or a collection of objects.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) resource: Arc<Resource>,
    /// The namespace in the path. Empty for all namespaces, and for cluster-scoped types.
    pub(crate) namespace: String,
    /// The name of the object. Empty for a collection.
    pub(crate) name: String,
    pub(crate) subresource: Subresource,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subresource {
    None,
    Status,
    /// Only for namespaces: writes `spec.finalizers`.
    Finalize,
}

impl Target {
    /// The object's key in the store.
    pub(crate) fn key(&self) -> String {
        key(&self.namespace, &self.name)
    }
}

/// The key in the store of an object with this namespace and name.
pub(crate) fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    }
}

impl Route {
    pub(crate) fn find(catalog: &Catalog, method: &Method, path: &str) -> Result<Self, Failure> {
        let segments: Vec<String> = path
            .split('/')
            .filter(|segment| !segment.is_empty())
            .map(|segment| percent_decode_str(segment).decode_utf8_lossy().into_owned())
            .collect();
        let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
        match parts.as_slice() {
            ["readyz" | "livez" | "healthz", ..] => Ok(Self::Health),
            ["version"] => Ok(Self::Version),
            ["openapi", "v3", rest @ ..] => Ok(Self::OpenApi(owned(rest))),
            ["api" | "apis"] | ["api" | "apis", _] | ["apis", _, _] => {
                Ok(Self::Discovery(segments))
            }
            [
                "apis",
                "authorization.k8s.io",
                "v1",
                "selfsubjectaccessreviews",
            ] if method == Method::POST => Ok(Self::AccessReview {
                kind: "SelfSubjectAccessReview",
            }),
            ["apis", "authentication.k8s.io", "v1", "selfsubjectreviews"]
                if method == Method::POST =>
            {
                Ok(Self::SubjectReview)
            }
            ["api", version, rest @ ..] => Self::objects(catalog, "", version, rest),
            ["apis", group, version, rest @ ..] if catalog.iter().any(|r| r.group == *group) => {
                Self::objects(catalog, group, version, rest)
            }
            _ => Err(Failure::no_such_page()),
        }
    }

    fn objects(
        catalog: &Catalog,
        group: &str,
        version: &str,
        rest: &[&str],
    ) -> Result<Self, Failure> {
        let find = |plural: &str| catalog.by_plural(group, version, plural);
        let (namespace, rest) = match rest {
            // A path below a namespace that is not one of the namespace's own subresources.
            ["namespaces", namespace, rest @ ..]
                if rest.first().is_some_and(|plural| find(plural).is_some()) =>
            {
                (*namespace, rest)
            }
            rest => ("", rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (*plural, "", Subresource::None),
            [plural, name] => (*plural, *name, Subresource::None),
            [plural, name, "status"] => (*plural, *name, Subresource::Status),
            ["namespaces", name, "finalize"] => ("namespaces", *name, Subresource::Finalize),
            _ => return Err(Failure::unknown_path()),
        };
        let resource = find(plural).ok_or_else(Failure::unknown_path)?;
        let scope_fits = if resource.namespaced {
            !namespace.is_empty() || name.is_empty()
        } else {
            namespace.is_empty()
        };
        let has_subresource = subresource != Subresource::Status || resource.has_status;
        if !scope_fits || !has_subresource {
            return Err(Failure::unknown_path());
        }
        Ok(Self::Objects(Target {
            resource: resource.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource,
        }))
    }
}

fn owned(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|&part| part.to_owned()).collect()
}
