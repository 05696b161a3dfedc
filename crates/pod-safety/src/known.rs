//! Facts that may be unknown, and why. A fact that could not be read never counts as ok.

use std::fmt;

use maintenance_lease::ApiError;

/// A fact, or why it is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known<T> {
    /// The fact.
    Yes(T),
    /// Why it is unknown.
    Unknown(Why),
}

/// Why a fact is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The user lacks this permission, such as `get nodes`.
    Forbidden(String),
    /// There was no valid answer. The text is the error as kubectl prints it.
    NoAnswer(String),
    /// It was not read.
    NotRead,
    /// The objects that were read do not show it. The text says what is missing or wrong.
    Inconclusive(String),
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self::Unknown(Why::NotRead)
    }
}

impl<T> Known<T> {
    /// The result of a read that needs the permission `right`.
    pub fn of(read: Result<T, ApiError>, right: impl FnOnce() -> String) -> Self {
        match read {
            Ok(fact) => Self::Yes(fact),
            Err(error) if error.is_forbidden() => Self::Unknown(Why::Forbidden(right())),
            Err(error) => Self::Unknown(Why::NoAnswer(error.to_string())),
        }
    }

    /// The fact, if it is known.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Yes(fact) => Some(fact),
            Self::Unknown(_) => None,
        }
    }

    /// Why the fact is unknown, if it is.
    pub fn why(&self) -> Option<&Why> {
        match self {
            Self::Yes(_) => None,
            Self::Unknown(why) => Some(why),
        }
    }

    /// The same fact by reference.
    pub fn as_ref(&self) -> Known<&T> {
        match self {
            Self::Yes(fact) => Known::Yes(fact),
            Self::Unknown(why) => Known::Unknown(why.clone()),
        }
    }

    /// Applies `follow` to the fact, if it is known.
    pub fn map<U>(self, follow: impl FnOnce(T) -> U) -> Known<U> {
        match self {
            Self::Yes(fact) => Known::Yes(follow(fact)),
            Self::Unknown(why) => Known::Unknown(why),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden(right) => write!(f, "no permission to {right}"),
            Self::NoAnswer(how) => f.write_str(how),
            Self::Inconclusive(what) => f.write_str(what),
            Self::NotRead => f.write_str("it was not read"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn unanswered_reads_are_unknown() {
        let error = ApiError::TimedOut(Duration::from_secs(10));
        let known = Known::<()>::of(Err(error), || unreachable!("nothing was refused"));
        let Known::Unknown(Why::NoAnswer(how)) = &known else {
            panic!("{known:?}");
        };
        assert!(how.contains("within 10s"), "{how}");
        assert_eq!(known.map(|()| 1).value(), None);
        assert_eq!(Known::Yes(1).map(|one| one + 1), Known::Yes(2));
    }
}
