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

    /// The question before it breaks the lock that `person` has on `node`.
    pub(crate) fn breaks_one(self, node: &str, person: &str) -> String {
        match self {
            Self::Hold => format!("Take node/{node} from {person}?"),
            Self::Unhold => format!("End the hold of {person} on node/{node}?"),
            Self::Acquire | Self::Renew | Self::Release => {
                format!("Break the lease of {person} on node/{node}?")
            }
        }
    }

    /// The question before it breaks the locks of so many nodes.
    pub(crate) fn breaks_many(self, nodes: usize) -> String {
        match self {
            Self::Hold => format!("Take these {nodes} nodes from their holders?"),
            Self::Unhold => format!("End these {nodes} holds?"),
            Self::Acquire | Self::Renew | Self::Release => format!("Break these {nodes} leases?"),
        }
    }

    /// What is held now, or would be in a `dry_run`, after it succeeded with `done` and not with
    /// `left`; `None` where the result of a single node said it.
    pub(crate) fn summary(self, done: &[&str], left: &[&str], dry_run: bool) -> Option<String> {
        let all = done.len() + left.len();
        if all < 2 {
            return None;
        }
        let state = match dry_run {
            true => format!("would be {}", self.state()),
            false => format!("{} now", self.state()),
        };
        let be = if dry_run { "would be" } else { "was" };
        Some(match (self, done, left) {
            (_, _, []) if dry_run => format!("all {all} nodes {state}"),
            (_, _, []) => format!("all {all} nodes are {state}"),
            (_, [], _) => format!("none of the {all} nodes {be} {}", self.participle()),
            (Self::Acquire | Self::Renew | Self::Hold, ..) => {
                format!("{state}, {} of {all} nodes: {}", done.len(), list(done))
            }
            (Self::Release | Self::Unhold, ..) => format!(
                "{state}, {} of {all} nodes; not {}: {}",
                done.len(),
                self.participle(),
                list(left)
            ),
        })
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
        let summary = |verb: Verb, done: &[&str], left: &[&str]| {
            verb.summary(done, left, false).unwrap_or_default()
        };
        assert_eq!(summary(Verb::Release, &["a"], &[]), "");
        assert_eq!(
            Verb::Acquire.summary(&["a", "b"], &[], true).as_deref(),
            Some("all 2 nodes would be held")
        );
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
