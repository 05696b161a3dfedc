//! The object that is explained.

/// A kind of object that can be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Pod,
    Claim,
    Namespace,
}

/// The object that is explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) kind: Kind,
    /// Empty for a namespace.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Kind {
    /// The kind with this name of kubectl's.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "pod" | "pods" | "po" => Some(Self::Pod),
            "pvc" | "persistentvolumeclaim" | "persistentvolumeclaims" => Some(Self::Claim),
            "namespace" | "namespaces" | "ns" => Some(Self::Namespace),
            _ => None,
        }
    }

    /// The resource type, as kubectl writes it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Claim => "pvc",
            Self::Namespace => "namespace",
        }
    }
}

impl Subject {
    /// Its name in kubectl's form.
    pub(crate) fn shown(&self) -> String {
        format!("{}/{}", self.kind.word(), self.name)
    }
}
