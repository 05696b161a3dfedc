//! How an acquisition was lost, for people.

use std::fmt;

use crate::lease::NodeLease;
use crate::protocol::{Loss, Names};
use crate::repository::Subject;

/// An acquisition that was lost while something worked under it.
#[derive(Clone, Debug)]
pub struct Lost {
    /// What the lock was on.
    pub subject: Subject,
    /// Its name.
    pub node: String,
    /// How.
    pub by: LostBy,
    /// The Lease as it was last seen; `None` where it is gone, or nothing was seen of it since.
    pub lease: Option<NodeLease>,
    /// What kept it from being renewed, in the words of the last request that failed.
    pub problem: Option<String>,
}

/// How an acquisition was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LostBy {
    /// It could not be renewed in time.
    Expiry,
    /// Another acquisition stands there: its holder.
    TakeOver(String),
    /// Somebody else released it: by force where the Lease says [who](NodeLease::released_by).
    Release,
    /// The Lease was deleted.
    Deletion,
    /// The Lease was deleted and made again: its holder, if any.
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

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lock = format_args!("{}/{}", self.subject, self.node);
        match &self.by {
            LostBy::Expiry => {
                write!(f, "{lock} could not be renewed in time")?;
                match &self.problem {
                    Some(problem) => write!(f, ": {problem}"),
                    None => Ok(()),
                }
            }
            LostBy::TakeOver(by) => {
                write!(f, "{lock} was taken over by {}", by.escape_debug())
            }
            LostBy::Release => match self.lease.as_ref().and_then(NodeLease::released_by) {
                Some(by) => write!(f, "{lock} was released by {}", by.escape_debug()),
                None => write!(f, "{lock} was released by somebody else"),
            },
            LostBy::Deletion => write!(f, "the Lease of {lock} was deleted"),
            LostBy::Replacement(None) => {
                write!(f, "the Lease of {lock} was deleted and made again")
            }
            LostBy::Replacement(Some(by)) => write!(
                f,
                "the Lease of {lock} was deleted and made again, for {}",
                by.escape_debug()
            ),
            LostBy::Election => write!(
                f,
                "the Lease of {lock} was taken over by coordinated leader election"
            ),
        }
    }
}

impl std::error::Error for Lost {}
