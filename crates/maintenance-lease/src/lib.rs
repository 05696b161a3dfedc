//! One lock per Kubernetes node: the library under `kubectl maint`.

pub mod protocol;
