//! Who has a lock, in words that are safe to print.

use maintenance_lease::NodeLease;
use maintenance_lease::env::{Env as _, Machine};
use maintenance_lease::protocol::identity;

use crate::text::escape;

/// Who holds a node: of a hold the person behind it.
pub(crate) fn person(lease: &NodeLease) -> String {
    lease.holder().map_or_else(|| "nobody".to_owned(), of_node)
}

/// The holder of a node's Lease: of a hold the person behind it.
pub(crate) fn of_node(holder: &str) -> String {
    named(identity::person(holder))
}

/// A holder as it stands, whatever other tools wrote.
pub(crate) fn named(holder: &str) -> String {
    identity::visible(&escape(holder)).into_owned()
}

/// A command that holds nodes for as long as it runs, by a name of its process: two of the same person
/// keep each other off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Running {
    With,
    ForceDelete,
}

impl Running {
    const ALL: [Self; 2] = [Self::With, Self::ForceDelete];

    /// The command, as typed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::With => "with",
            Self::ForceDelete => "force-delete",
        }
    }

    /// `identity` for this one process.
    pub(crate) fn holder(self, identity: &str) -> String {
        let mut unique = [0; 3];
        Machine.random(&mut unique);
        let unique: String = unique.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{identity}{}{}-{unique}", self.mark(), std::process::id())
    }

    /// Which command a holder is, and whose; `None` where it is none.
    pub(crate) fn of(holder: &str) -> Option<(Self, &str)> {
        let found = Self::ALL.into_iter().filter_map(|running| {
            let (whose, _) = holder.rsplit_once(&running.mark())?;
            Some((running, whose))
        });
        // Of one that runs under another, the inner one holds.
        found.max_by_key(|(_, whose)| whose.len())
    }

    /// What stands behind the identity, before the process id and what makes it unique.
    fn mark(self) -> String {
        format!("/{}-", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_name_of_its_own_that_tells_whose_it_is() {
        let with = || Running::With.holder("a/b@c");
        let (one, other) = (with(), with());
        assert_ne!(one, other);
        assert_eq!(Running::of(&one), Some((Running::With, "a/b@c")));
        assert_eq!(Running::of("a/b@c"), None);
        let inner = Running::ForceDelete.holder(&one);
        assert_eq!(Running::of(&inner), Some((Running::ForceDelete, &*one)));
    }
}
