//! The words for verbs that change locks or depend on one.

use crate::error::Verb;

/// The nodes of a command by their result, each list in the order of the nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcomes {
    /// The verb succeeded.
    pub(crate) done: Vec<String>,
    /// Nothing was changed.
    pub(crate) left: Vec<String>,
    /// It is unknown whether something was changed.
    pub(crate) open: Vec<String>,
}

/// How many names are listed; of more, only their number is shown.
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
            Self::With => "with",
            Self::Verify => "verify",
            Self::Fence => "fence",
            Self::Unfence => "unfence",
            Self::Wait => "wait",
        }
    }

    /// The message that it failed for `node`; the cause follows.
    pub(crate) fn failed(self, node: &str) -> String {
        match self {
            Self::Verify => format!("lost the lock on node/{node}"),
            Self::Wait => format!("node/{node} is not free"),
            _ => self.cannot(&format!("node/{node}")),
        }
    }

    /// The message that nothing was done for `node`, because of an interruption or of another node.
    pub(crate) fn not_done(self, node: &str, interrupted: bool) -> String {
        let why = match interrupted {
            true => "interrupted",
            false => "another node failed",
        };
        match self {
            // Nobody knows whether the lock is still held.
            Self::Verify => format!("did not check the lock on node/{node}: {why}"),
            Self::Wait => format!("stopped waiting for node/{node}: {why}"),
            _ => format!("{}: {why}", self.failed(node)),
        }
    }

    /// The same for this many nodes.
    pub(crate) fn failed_many(self, nodes: usize) -> String {
        match self {
            Self::Verify => format!("lost the locks on {nodes} nodes"),
            Self::Wait => format!("{nodes} nodes are not free"),
            _ => self.cannot(&format!("{nodes} nodes")),
        }
    }

    fn cannot(self, nodes: &str) -> String {
        match self {
            Self::With => Self::Acquire.cannot(nodes),
            Self::Hold => format!("cannot put {nodes} on hold"),
            _ => format!("cannot {} {nodes}", self.name()),
        }
    }

    /// What it does to a node, as a participle.
    pub(crate) fn participle(self) -> &'static str {
        match self {
            Self::Acquire => "acquired",
            Self::Renew => "renewed",
            Self::Release => "released",
            Self::Hold => "put on hold",
            Self::Unhold | Self::Unfence => "taken off hold",
            Self::With => "locked",
            Self::Verify => "verified",
            Self::Fence => "put on hold",
            Self::Wait => "waited for",
        }
    }

    /// The state of nodes after it succeeded.
    fn state(self) -> &'static str {
        match self {
            Self::Acquire | Self::With | Self::Verify => "locked",
            Self::Renew => "renewed",
            Self::Hold | Self::Fence => "on hold",
            Self::Release | Self::Unhold | Self::Unfence | Self::Wait => "free",
        }
    }

    /// The question before it ends the lock of `person` on `node`.
    pub(crate) fn breaks_one(self, node: &str, person: &str) -> String {
        match self {
            Self::Hold => format!("Take over node/{node} from {person}?"),
            Self::Unhold => format!("End the hold of {person} on node/{node}?"),
            _ => format!("Release the lock of {person} on node/{node}?"),
        }
    }

    /// The question before it ends the locks of this many nodes.
    pub(crate) fn breaks_many(self, nodes: usize) -> String {
        match self {
            Self::Hold => format!("Take over these {nodes} nodes from their holders?"),
            Self::Unhold => format!("End these {nodes} holds?"),
            _ => format!("Release these {nodes} locks?"),
        }
    }

    /// The question before this takes expired locks, whose holders did not finish. `nodes` names them, for example `node/worker-1`.
    pub(crate) fn question(self, nodes: &str) -> String {
        match self {
            Self::Hold => format!("Put {nodes} on hold anyway?"),
            _ => format!("Lock {nodes} anyway?"),
        }
    }

    /// What an interrupted command reports if it changed nothing.
    pub(crate) fn nothing_done(self) -> String {
        match self {
            Self::Acquire | Self::With => "nothing was locked".to_owned(),
            _ => format!("nothing was {}", self.participle()),
        }
    }

    /// How many nodes are locked or renewed, or would be in a `dry_run`, and which are not; `None` if the result of a single
    /// node says it.
    pub(crate) fn summary(self, outcomes: &Outcomes, dry_run: bool) -> Option<String> {
        let Outcomes { done, left, open } = outcomes;
        let all = done.len() + left.len() + open.len();
        if all < 2 {
            return None;
        }
        let would_be = if dry_run { "would be " } else { "" };
        let known = match (&done[..], &open[..]) {
            // Others may have locked them.
            ([], []) => return Some(format!("0 of {all} nodes {would_be}{}", self.participle())),
            ([], _) => None,
            (done, _) => Some(format!(
                "{} of {all} nodes {would_be}{}",
                done.len(),
                self.state()
            )),
        };
        let not = (!left.is_empty()).then(|| format!("not {}: {}", self.participle(), list(left)));
        let unknown = (!open.is_empty()).then(|| format!("unknown: {}", list(open)));
        let parts: Vec<String> = known.into_iter().chain(not).chain(unknown).collect();
        Some(parts.join("; "))
    }
}

/// How to lock this many nodes that were not tried because others were refused, after the summary; empty if there are none.
pub(crate) fn how_to_lock_others(nodes: usize) -> String {
    match nodes {
        0 => String::new(),
        1 => "; add --partial to lock the node that was not refused".to_owned(),
        _ => format!("; add --partial to lock the {nodes} nodes that were not refused"),
    }
}

fn list(names: &[String]) -> String {
    first(names, LISTED)
}

/// At most this many of `names`, and the number of the others.
pub(crate) fn first(names: &[String], most: usize) -> String {
    match names.split_at_checked(most) {
        Some((first, rest)) if !rest.is_empty() => {
            format!("{} and {} more", first.join(", "), rest.len())
        }
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(verb: Verb, done: &[&str], left: &[&str], open: &[&str]) -> String {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let outcomes = Outcomes {
            done: names(done),
            left: names(left),
            open: names(open),
        };
        verb.summary(&outcomes, false).unwrap_or_default()
    }

    #[test]
    fn what_was_not_done_claims_nothing_about_the_lock() {
        let said = |verb: Verb| verb.not_done("a", false);
        assert_eq!(
            said(Verb::Wait),
            "stopped waiting for node/a: another node failed"
        );
        assert_eq!(
            said(Verb::Verify),
            "did not check the lock on node/a: another node failed"
        );
        assert_eq!(
            Verb::Acquire.not_done("a", true),
            "cannot acquire node/a: interrupted"
        );
    }

    #[test]
    fn the_last_line_says_what_is_locked() {
        assert_eq!(summary(Verb::Release, &["a"], &[], &[]), "");
        assert_eq!(
            summary(Verb::Acquire, &["a", "b"], &[], &[]),
            "2 of 2 nodes locked"
        );
        assert_eq!(
            summary(Verb::Renew, &["a"], &["b", "c"], &[]),
            "1 of 3 nodes renewed; not renewed: b, c"
        );
        assert_eq!(
            summary(Verb::Release, &["a", "b"], &["c"], &[]),
            "2 of 3 nodes free; not released: c"
        );
        assert_eq!(
            summary(Verb::Hold, &[], &["a", "b"], &[]),
            "0 of 2 nodes put on hold"
        );
        let many: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(
            summary(Verb::Acquire, &["x"], &many, &[]),
            "1 of 13 nodes locked; not acquired: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"
        );
    }

    #[test]
    fn a_dry_run_says_what_would_be_locked() {
        let outcomes = Outcomes {
            done: vec!["a".to_owned(), "b".to_owned()],
            ..Outcomes::default()
        };
        assert_eq!(
            Verb::Acquire.summary(&outcomes, true).as_deref(),
            Some("2 of 2 nodes would be locked")
        );
    }

    #[test]
    fn unknown_outcomes_are_not_denied() {
        assert_eq!(
            summary(Verb::Acquire, &[], &["a"], &["b"]),
            "not acquired: a; unknown: b"
        );
        assert_eq!(
            summary(Verb::Release, &["a"], &["b"], &["c"]),
            "1 of 3 nodes free; not released: b; unknown: c"
        );
        assert_eq!(
            summary(Verb::Unhold, &[], &[], &["a", "b"]),
            "unknown: a, b"
        );
    }
}
