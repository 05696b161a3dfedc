//! Objects as kubectl names them: `KIND/NAME`.

/// A kind of object that commands take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Node,
    Pod,
    Claim,
    Namespace,
}

/// An object of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) kind: Kind,
    /// The namespace of the command. It does not apply to a Node or a namespace.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Kind {
    /// The kind that kubectl knows by `word`: singular, plural or short.
    pub(crate) fn of(word: &str) -> Option<Self> {
        match word {
            "node" | "nodes" | "no" => Some(Self::Node),
            "pod" | "pods" | "po" => Some(Self::Pod),
            "pvc" | "persistentvolumeclaim" | "persistentvolumeclaims" => Some(Self::Claim),
            "namespace" | "namespaces" | "ns" => Some(Self::Namespace),
            _ => None,
        }
    }

    /// The kind as kubectl writes it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Pod => "pod",
            Self::Claim => "pvc",
            Self::Namespace => "namespace",
        }
    }
}

impl Object {
    /// Its name in kubectl's form.
    pub(crate) fn shown(&self) -> String {
        format!("{}/{}", self.kind.word(), self.name)
    }
}

/// The parts of `KIND/NAME`, the kind only if it is one of ours; `None` for a name alone.
pub(crate) fn kind_and_name(typed: &str) -> Option<(Option<Kind>, &str)> {
    let (kind, name) = typed.split_once('/')?;
    Some((Kind::of(kind), name))
}

/// The name in `NAME` or `KIND/NAME`.
pub(crate) fn name(typed: &str) -> &str {
    kind_and_name(typed).map_or(typed, |(_, name)| name)
}

/// The kind that is the first of the words, as in `kubectl get node worker-1`, and the names after it.
///
/// A word alone is a name, and so is one before a `KIND/NAME`: a node may be called `node`.
pub(crate) fn leading_kind(typed: &[String]) -> Option<(Kind, &[String])> {
    let (kind, names) = typed.split_first()?;
    let are_names = !names.is_empty() && names.iter().all(|name| kind_and_name(name).is_none());
    Kind::of(kind)
        .filter(|_| are_names)
        .map(|kind| (kind, names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_its_kind_before_a_slash() {
        for (typed, parts, only_name) in [
            ("a", None, "a"),
            ("no/a", Some((Some(Kind::Node), "a")), "a"),
            ("po/", Some((Some(Kind::Pod), "")), ""),
            ("deploy/a", Some((None, "a")), "a"),
            ("pvc/a/b", Some((Some(Kind::Claim), "a/b")), "a/b"),
        ] {
            assert_eq!(kind_and_name(typed), parts, "{typed}");
            assert_eq!(name(typed), only_name, "{typed}");
        }
    }

    #[test]
    fn the_kind_may_come_first_as_for_kubectl() {
        for (typed, found) in [
            ("node a", Some((Kind::Node, "a"))),
            ("nodes a b", Some((Kind::Node, "a b"))),
            ("po pod", Some((Kind::Pod, "pod"))),
            ("namespaces a", Some((Kind::Namespace, "a"))),
            ("node", None),
            ("a node", None),
            ("node node/a", None),
            ("deployment a", None),
        ] {
            let words: Vec<String> = typed.split(' ').map(ToOwned::to_owned).collect();
            let found_here = leading_kind(&words).map(|(kind, names)| (kind, names.join(" ")));
            let found = found.map(|(kind, names)| (kind, names.to_owned()));
            assert_eq!(found_here, found, "{typed}");
        }
    }
}
