//! What a Lease says in annotations of ours, and of which acquisition.

use serde::Deserialize;

/// The prefix of every annotation that this tool writes.
pub const ANNOTATION_PREFIX: &str = "kubectl-maint.dev/";

/// The lock id of the acquisition that a confirmed takeover ended. It is never removed, because it does not match any
/// later acquisition.
pub(crate) const BREAKS: &str = "kubectl-maint.dev/breaks";

/// The names behind the prefix.
pub(crate) mod annotation {
    pub(crate) const REASON: &str = "kubectl-maint.dev/reason";
    pub(crate) const TICKET: &str = "kubectl-maint.dev/ticket";
    pub(crate) const HOLD_UNTIL: &str = "kubectl-maint.dev/hold-until";
    pub(crate) const PURPOSE: &str = "kubectl-maint.dev/purpose";

    /// What the lock asks of its Node.
    pub(crate) const KEYS: &str = "kubectl-maint.dev/keys";

    pub(crate) const LAST_HOLDER: &str = "kubectl-maint.dev/last-holder";
    pub(crate) const RELEASED_AT: &str = "kubectl-maint.dev/released-at";
    pub(crate) const RELEASED_BY: &str = "kubectl-maint.dev/released-by";
    pub(crate) const ACQUISITION: &str = "kubectl-maint.dev/acquisition";

    /// The acquisition that ended last. It stays when others acquire the Lease later.
    pub(crate) const LAST_ACQUISITION: &str = "kubectl-maint.dev/last-acquisition";

    /// The API user who wrote the acquisition, [marked](super::mark) with its count: clients that do not know this
    /// annotation leave it in place.
    pub(crate) const USER: &str = "kubectl-maint.dev/user";

    /// The acquisitions that ended before. It stays when others acquire the Lease later.
    pub(crate) const HISTORY: &str = "kubectl-maint.dev/history";

    /// Of no acquisition, and so not among those that go with one.
    pub(crate) const FENCED: &str = "kubectl-maint.dev/fenced";

    /// The same. Its write made the API server record who writes the Lease.
    pub(crate) const REPAIRED: &str = "kubectl-maint.dev/repaired";

    pub(crate) const ALL: [&str; 9] = [
        REASON,
        TICKET,
        HOLD_UNTIL,
        PURPOSE,
        KEYS,
        LAST_HOLDER,
        RELEASED_AT,
        RELEASED_BY,
        ACQUISITION,
    ];
}

/// The purpose of a Lease that is used for leader election. It stays when a leader stops, because the
/// next leader is elected on the same Lease.
pub(crate) const ELECTION: &str = "leader-election";

/// In the [keys](crate::Acquire::keys) of a lock: label its Node as held.
pub const HELD_LABEL: &str = "held";

/// In the [keys](crate::Acquire::keys) of a lock: cordon its Node.
pub const CORDON: &str = "cordon";

/// In the [keys](crate::Acquire::keys) of a lock: keep the cordon of the lock that it replaced, if it is still there.
pub const KEPT_CORDON: &str = "kept-cordon";

/// The annotations that this tool writes, in its own words.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Notes {
    #[serde(rename = "kubectl-maint.dev/reason")]
    pub(crate) reason: Option<String>,
    #[serde(rename = "kubectl-maint.dev/ticket")]
    pub(crate) ticket: Option<String>,
    #[serde(rename = "kubectl-maint.dev/hold-until")]
    pub(crate) hold_until: Option<String>,
    /// What program holds it for what, for the same program to know it again.
    #[serde(rename = "kubectl-maint.dev/purpose")]
    pub(crate) purpose: Option<String>,
    /// What the lock asks of its Node, separated by commas.
    #[serde(rename = "kubectl-maint.dev/keys")]
    pub(crate) keys: Option<String>,
    #[serde(rename = "kubectl-maint.dev/last-holder")]
    pub(crate) last_holder: Option<String>,
    #[serde(rename = "kubectl-maint.dev/released-at")]
    pub(crate) released_at: Option<String>,
    /// Who released another's acquisition.
    #[serde(rename = "kubectl-maint.dev/released-by")]
    pub(crate) released_by: Option<String>,
    /// The nonce of the acquisition; on the wire it is [marked](mark) with the count.
    #[serde(rename = "kubectl-maint.dev/acquisition")]
    pub(crate) nonce: Option<String>,
    /// The [mark](mark) of the acquisition that was ended last.
    #[serde(rename = "kubectl-maint.dev/last-acquisition")]
    pub(crate) last_acquisition: Option<String>,
    /// The Node was fenced; how is written on the Node itself.
    #[serde(rename = "kubectl-maint.dev/fenced")]
    pub(crate) fenced: Option<String>,
    /// The API user of the acquisition; on the wire it is [marked](mark) with the count.
    #[serde(rename = "kubectl-maint.dev/user")]
    pub(crate) user: Option<String>,
    /// The acquisitions that ended before, as JSON.
    #[serde(rename = "kubectl-maint.dev/history")]
    pub(crate) history: Option<String>,
    /// The Lease has notes that are about an earlier acquisition, of which nothing is kept here.
    #[serde(skip)]
    pub(crate) outdated: bool,
}

impl Notes {
    /// The Lease is, or was last, used for leader election.
    pub(crate) fn are_of_election(&self) -> bool {
        self.purpose.as_deref() == Some(ELECTION)
    }

    /// The nonce of the acquisition that was ended last.
    pub(crate) fn ended(&self) -> Option<&str> {
        let (_, nonce) = self.last_acquisition.as_deref()?.split_once('-')?;
        Some(nonce).filter(|nonce| !nonce.is_empty())
    }

    /// What the annotations say of a Lease that counts `transitions`.
    ///
    /// Other tools, such as client-go's leader election, leave our annotations in place when they
    /// take an expired lease: what describes the acquisition before is not to be taken for the words
    /// of the new holder. Without a mark the notes count: people write a hold's reason by hand.
    pub(crate) fn of_count(mut self, transitions: u32) -> Self {
        let user = self.user.take();
        let user = user.as_deref().and_then(|user| nonce(user, transitions));
        self.user = user.map(ToOwned::to_owned);
        let Some(acquisition) = self.nonce.as_deref() else {
            return self;
        };
        match nonce(acquisition, transitions) {
            Some(nonce) => Self {
                nonce: Some(nonce)
                    .filter(|nonce| !nonce.is_empty())
                    .map(ToOwned::to_owned),
                ..self
            },
            None => Self {
                outdated: true,
                fenced: self.fenced,
                last_acquisition: self.last_acquisition,
                history: self.history,
                user: self.user,
                ..Self::default()
            },
        }
    }
}

/// The value that marks an acquisition: the count that it wrote, and its nonce.
pub(crate) fn mark(transitions: u32, nonce: &str) -> String {
    format!("{transitions}-{nonce}")
}

/// Marks the words of the client that released the acquisition that `transitions` counts, not of the next
/// holder. It has no nonce, because there is no acquisition now.
pub(crate) fn mark_of_release(transitions: u32) -> String {
    mark(transitions, "")
}

/// What a mark says, such as the nonce, which is empty for a release. `None` if it marks another acquisition than the one that
/// `transitions` counts.
fn nonce(mark: &str, transitions: u32) -> Option<&str> {
    mark.strip_prefix(&transitions.to_string())?
        .strip_prefix('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fenced_annotation_belongs_to_no_acquisition() {
        let notes = Notes {
            fenced: Some("true".to_owned()),
            ..notes(Some("3-n1"))
        };
        assert!(notes.clone().of_count(3).fenced.is_some());
        let later = notes.of_count(4);
        assert!(later.outdated && later.fenced.is_some());
    }

    fn notes(acquisition: Option<&str>) -> Notes {
        Notes {
            reason: Some("new kernel".to_owned()),
            ticket: Some("OPS-7".to_owned()),
            hold_until: Some("2026-03-01T12:00:00Z".to_owned()),
            last_holder: Some("bob".to_owned()),
            nonce: acquisition.map(ToOwned::to_owned),
            ..Notes::default()
        }
    }

    #[test]
    fn notes_count_for_the_acquisition_that_wrote_them() {
        let notes = notes(Some(&mark(7, "n1"))).of_count(7);
        assert_eq!(notes.nonce.as_deref(), Some("n1"));
        assert_eq!(notes.reason.as_deref(), Some("new kernel"));
        assert!(!notes.outdated);
    }

    #[test]
    fn notes_of_another_acquisition_say_nothing_of_this_one() {
        for mark in [
            "6-n1", "8-n1", "17-n1", "77-n1", "07-n1", "7n1", "7", "n1", "",
        ] {
            let notes = notes(Some(mark)).of_count(7);
            assert!(notes.outdated, "{mark:?}");
            assert_eq!(notes.nonce, None, "{mark:?}");
            assert_eq!(notes.reason, None, "{mark:?}");
            assert_eq!(notes.ticket, None, "{mark:?}");
            assert_eq!(notes.hold_until, None, "{mark:?}");
            assert_eq!(notes.last_holder, None, "{mark:?}");
        }
    }

    #[test]
    fn the_words_of_a_release_count_until_the_next_acquisition() {
        let mark = mark_of_release(7);
        let released = notes(Some(&mark)).of_count(7);
        assert_eq!(released.reason.as_deref(), Some("new kernel"));
        assert_eq!(released.nonce, None, "no acquisition stands there");
        let taken = notes(Some(&mark)).of_count(8);
        assert_eq!(taken.reason, None);
        assert!(taken.outdated);
    }

    #[test]
    fn a_user_is_that_of_one_acquisition() {
        let signed = |count: u32| Notes {
            user: Some(mark(count, "system:serviceaccount:ops:robot-1")),
            ..notes(Some("7-n1"))
        };
        let user = signed(7).of_count(7).user;
        assert_eq!(user.as_deref(), Some("system:serviceaccount:ops:robot-1"));
        // A client that does not know the annotation acquired it since.
        assert_eq!(signed(6).of_count(7).user, None);
        assert_eq!(signed(7).of_count(8).user, None);
    }

    #[test]
    fn notes_without_an_acquisition_count_for_any_writer() {
        let notes = notes(None).of_count(7);
        assert_eq!(notes.reason.as_deref(), Some("new kernel"));
        assert!(notes.hold_until.is_some());
        assert!(!notes.outdated);
    }
}
