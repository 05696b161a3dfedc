//! The verbs that change locks, in the words that it takes to speak of them.

/// A verb that changes locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Acquire,
    Renew,
    Release,
    Hold,
    Unhold,
}

/// How many names are listed; of more, their number.
const LISTED: usize = 10;

impl Verb {
    /// As typed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Hold => "hold",
            Self::Unhold => "unhold",
        }
    }

    /// What it does to a node, as a participle.
    fn participle(self) -> &'static str {
        match self {
            Self::Acquire => "acquired",
            Self::Renew => "renewed",
            Self::Release => "released",
            Self::Hold => "put on hold",
            Self::Unhold => "taken off hold",
        }
    }

    /// What nodes are where it succeeded.
    fn state(self) -> &'static str {
        match self {
            Self::Acquire | Self::Renew => "held",
            Self::Hold => "on hold",
            Self::Release | Self::Unhold => "free",
        }
    }

    /// What is held now, after it succeeded with `done` and not with `left`.
    pub(crate) fn summary(self, done: &[&str], left: &[&str]) -> String {
        let (state, all) = (self.state(), done.len() + left.len());
        match (self, done, left) {
            (_, _, []) => format!("all {all} nodes are {state} now"),
            (_, [], _) => format!("none of the {all} nodes was {}", self.participle()),
            (Self::Acquire | Self::Renew | Self::Hold, ..) => {
                format!("{state} now, {} of {all} nodes: {}", done.len(), list(done))
            }
            (Self::Release | Self::Unhold, ..) => format!(
                "{state} now, {} of {all} nodes; not {}: {}",
                done.len(),
                self.participle(),
                list(left)
            ),
        }
    }
}

fn list(names: &[&str]) -> String {
    match names.split_at_checked(LISTED) {
        Some((first, rest)) if !rest.is_empty() => {
            format!("{} and {} more", first.join(", "), rest.len())
        }
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_says_what_is_held() {
        let summary = |verb: Verb, done: &[&str], left: &[&str]| verb.summary(done, left);
        assert_eq!(
            summary(Verb::Acquire, &["a", "b"], &[]),
            "all 2 nodes are held now"
        );
        assert_eq!(
            summary(Verb::Renew, &["a"], &["b", "c"]),
            "held now, 1 of 3 nodes: a"
        );
        assert_eq!(
            summary(Verb::Release, &["a", "b"], &["c"]),
            "free now, 2 of 3 nodes; not released: c"
        );
        assert_eq!(
            summary(Verb::Hold, &[], &["a", "b"]),
            "none of the 2 nodes was put on hold"
        );
        let many: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(
            summary(Verb::Acquire, &many, &["x"]),
            "held now, 12 of 13 nodes: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"
        );
    }
}
