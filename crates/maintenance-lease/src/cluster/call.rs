//! What one request asks for.

use http::Method;
use serde_json::Value;

/// What a request asks for in its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// The object.
    Json,
    /// The rows that `kubectl get` prints.
    Table,
}

impl Accept {
    pub(super) fn header(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Table => "application/json;as=Table;v=v1;g=meta.k8s.io",
        }
    }

    /// The array field that holds the objects of a list.
    pub(super) fn array(self) -> &'static str {
        match self {
            Self::Json => "items",
            Self::Table => "rows",
        }
    }
}

/// A request, without what all requests have in common.
#[derive(Clone, Debug)]
pub struct Call {
    /// The HTTP method.
    pub method: Method,
    /// Path with query.
    pub path: String,
    /// The form of the answer.
    pub accept: Accept,
    /// Content type and body.
    pub body: Option<(&'static str, Vec<u8>)>,
}

impl Call {
    /// Reads what is at `path`.
    #[must_use]
    pub fn get(path: String, accept: Accept) -> Self {
        Self {
            method: Method::GET,
            path,
            accept,
            body: None,
        }
    }

    /// Sends `body`, in JSON of this `content_type`, to `path`.
    #[must_use]
    pub fn write(method: Method, path: String, content_type: &'static str, body: &Value) -> Self {
        Self {
            method,
            path,
            accept: Accept::Json,
            body: Some((content_type, body.to_string().into_bytes())),
        }
    }
}
