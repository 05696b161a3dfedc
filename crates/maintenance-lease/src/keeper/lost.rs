//! How an acquisition was lost, for people.

use std::fmt;

use crate::lease::NodeLease;
use crate::protocol::{Loss, Names, identity};
use crate::repository::Subject;

/// An acquisition that was lost during the work under it.
#[derive(Clone, Debug)]
pub struct Lost {
    /// What the lock was for.
    pub subject: Subject,
    /// Its name.
    pub node: String,
    /// How it was lost.
    pub by: LostBy,
    /// The Lease as last seen; `None` if it is gone, or was not seen since.
    pub lease: Option<NodeLease>,
    /// Why it could not be renewed, in the words of the last request that failed.
    pub problem: Option<String>,
}

/// How an acquisition was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LostBy {
    /// It could not be renewed in time.
    Expiry,
    /// Another acquisition replaced it; its holder.
    TakeOver(String),
    /// Somebody else released it: by force, if the Lease says [who](NodeLease::released_by).
    Release,
    /// The Lease was deleted.
    Deletion,
    /// The Lease was deleted and created again; its holder, if any.
    Replacement(Option<String>),
    /// Coordinated leader election took the Lease over.
    Election,
}

impl LostBy {
    pub(super) fn new(loss: Loss, names: &Names) -> Self {
        match loss {
            Loss::Expired => Self::Expiry,
            Loss::Taken { by } => Self::TakeOver(names.name(by).to_owned()),
            Loss::Released => Self::Release,
            Loss::Deleted => Self::Deletion,
            Loss::Replaced { by } => Self::Replacement(by.map(|by| names.name(by).to_owned())),
            Loss::Elected => Self::Election,
        }
    }
}

impl Lost {
    /// Who holds it now, in words.
    fn taker(&self, holder: &str) -> String {
        let person = self.subject.holder(holder);
        match self.subject {
            Subject::Node if identity::is_admin(holder) => format!("a hold of {person}"),
            Subject::Node | Subject::Lease => person,
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lock = format_args!("{}/{}", self.subject, self.node);
        let lease = self.subject.lease(&self.node);
        match &self.by {
            LostBy::Expiry => {
                write!(f, "{lock} could not be renewed in time")?;
                match &self.problem {
                    Some(problem) => write!(f, ": {problem}"),
                    None => Ok(()),
                }
            }
            LostBy::TakeOver(by) => {
                write!(f, "{lock} was taken over by {}", self.taker(by))
            }
            LostBy::Release => match self.lease.as_ref().and_then(NodeLease::released_by) {
                Some(by) => write!(f, "{lock} was released by {}", self.subject.holder(by)),
                None => write!(f, "{lock} was released by somebody else"),
            },
            LostBy::Deletion => write!(f, "{lease} was deleted"),
            LostBy::Replacement(None) => write!(f, "{lease} was deleted and created again"),
            LostBy::Replacement(Some(by)) => write!(
                f,
                "{lease} was deleted and created again for {}",
                self.taker(by)
            ),
            LostBy::Election => write!(f, "{lease} was taken over by coordinated leader election"),
        }
    }
}

impl std::error::Error for Lost {}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(subject: Subject, by: LostBy) -> String {
        let lost = Lost {
            subject,
            node: "a".to_owned(),
            by,
            lease: None,
            problem: None,
        };
        lost.to_string()
    }

    #[test]
    fn the_holder_of_a_hold_is_shown_without_the_prefix() {
        let hold = || "kubeadm:bob@laptop".to_owned();
        assert_eq!(
            describe(Subject::Node, LostBy::TakeOver(hold())),
            "node/a was taken over by a hold of bob@laptop"
        );
        assert_eq!(
            describe(Subject::Node, LostBy::Replacement(Some(hold()))),
            "the Lease of node/a was deleted and created again for a hold of bob@laptop"
        );
        assert_eq!(
            describe(Subject::Lease, LostBy::TakeOver(hold())),
            "lease/a was taken over by kubeadm:bob@laptop",
            "elsewhere it is a name like any other"
        );
    }

    #[test]
    fn an_empty_holder_name_is_recognized() {
        let taken = describe(Subject::Node, LostBy::TakeOver(" ".to_owned()));
        assert_eq!(taken, "node/a was taken over by \" \"");
    }
}
