//! The holder of the locks of a running command.

use maintenance_lease::env::{Env as _, Machine};
use maintenance_lease::protocol::identity;

/// A command that holds nodes as long as it runs. Its holder name has the process id, so that two commands
/// of the same person exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldingCommand {
    With,
    ForceDelete,
}

impl HoldingCommand {
    const ALL: [Self; 2] = [Self::With, Self::ForceDelete];

    /// The command, as typed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::With => "with",
            Self::ForceDelete => "force-delete",
        }
    }

    /// The holder name of this process for `identity`.
    pub(crate) fn holder(self, identity: &str) -> String {
        let mut unique = [0; 3];
        Machine.random(&mut unique);
        let unique: String = unique.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{identity}{}{}-{unique}", self.mark(), std::process::id())
    }

    /// The command and the identity in a holder name; `None` if it is not such a name. A hold outlives the command in which it
    /// was made.
    pub(crate) fn of(holder: &str) -> Option<(Self, &str)> {
        if identity::is_admin(holder) {
            return None;
        }
        let found = Self::ALL.into_iter().filter_map(|running| {
            let (whose, _) = holder.rsplit_once(&running.mark())?;
            Some((running, whose))
        });
        // If one runs under another, the inner one is the holder.
        found.max_by_key(|(_, whose)| whose.len())
    }

    /// The text between the identity and the process id.
    fn mark(self) -> String {
        format!("/{}-", self.name())
    }
}

/// The person behind a holder name, without the marks of a hold and of running commands.
pub(crate) fn person(holder: &str) -> &str {
    let person = identity::person(holder);
    match HoldingCommand::of(person) {
        Some((_, whose)) => self::person(whose),
        None => person,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_name_of_a_process_shows_its_user() {
        let with = || HoldingCommand::With.holder("a/b@c");
        let (one, other) = (with(), with());
        assert_ne!(one, other);
        assert_eq!(
            HoldingCommand::of(&one),
            Some((HoldingCommand::With, "a/b@c"))
        );
        assert_eq!(HoldingCommand::of("a/b@c"), None);
        let inner = HoldingCommand::ForceDelete.holder(&one);
        assert_eq!(
            HoldingCommand::of(&inner),
            Some((HoldingCommand::ForceDelete, &*one))
        );
        for holder in ["a/b@c", &*one, &*inner, &format!("kubeadm:{inner}")] {
            assert_eq!(person(holder), "a/b@c");
        }
    }
}
