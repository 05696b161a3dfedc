//! The last acquisitions of a lock, in an annotation on its Lease.
//!
//! The write that ends an acquisition adds it, and drops the oldest ones if the annotation gets too long. Nothing
//! depends on it: a value that can't be read stays as it is.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::lease::NodeLease;
use crate::protocol::Instant;
use crate::protocol::identity::person;
use crate::text::shortened;

/// The longest history, in bytes.
pub(crate) const LONGEST_HISTORY: usize = 1024;

/// The longest name or ticket, and the longest reason, in bytes.
const LONGEST_NAME: usize = 96;
const LONGEST_WHY: usize = 200;

/// An acquisition that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastLock {
    /// Who held it, as written.
    pub holder: String,
    /// The API user, if that is another name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The ticket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// When it began, if that is known.
    #[serde(default, with = "seconds", skip_serializing_if = "Option::is_none")]
    pub from: Option<DateTime<Utc>>,
    /// When it ended, if that is known.
    #[serde(default, with = "seconds", skip_serializing_if = "Option::is_none")]
    pub to: Option<DateTime<Utc>>,
    /// How it ended.
    pub end: Ending,
    /// Who ended it, if not its holder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// How an acquisition ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It was released, or its hold was ended.
    Released,
    /// It expired, and somebody has acquired the node since.
    Expired,
    /// Its holder acquired the node again, for example to put it on hold.
    Replaced,
    /// Somebody else took it over.
    TakenOver,
}

/// A history that can't be read: another client wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the history cannot be read")]
pub struct UnreadableHistory;

mod seconds {
    use chrono::{DateTime, Utc};
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    #[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
    pub(super) fn serialize<S: Serializer>(
        time: &Option<DateTime<Utc>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(|time| time.timestamp()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<DateTime<Utc>>, D::Error> {
        let seconds = Option::<i64>::deserialize(deserializer)?;
        Ok(seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0)))
    }
}

impl NodeLease {
    /// The acquisitions that ended last, the oldest first. The client that ended or replaced a lock wrote its
    /// entry, and nothing proves it. Escape the texts before you show them.
    ///
    /// # Errors
    /// If another client wrote something else there.
    pub fn history(&self) -> Result<Vec<PastLock>, UnreadableHistory> {
        match self.notes.history.as_deref() {
            None | Some("") => Ok(Vec::new()),
            Some(text) if text.len() > LONGEST_HISTORY => Err(UnreadableHistory),
            Some(text) => serde_json::from_str(text).map_err(|_| UnreadableHistory),
        }
    }
}

/// The history after the acquisition in `lease` was ended at `at`: by `next`, who acquires the node, or by
/// a release, of `by` if that is not the holder. `None`: it stays as it is, because nobody held the lock or because it can't
/// be read.
pub(crate) fn after(
    lease: &NodeLease,
    at: Instant,
    next: Option<&str>,
    by: Option<&str>,
) -> Option<String> {
    let holder = lease.holder()?;
    let mut all = lease.history().ok()?;
    let expired = lease.end().filter(|end| *end <= at && !lease.is_hold());
    let (end, by) = match next {
        None => (Ending::Released, by),
        Some(_) if expired.is_some() => (Ending::Expired, None),
        Some(next) if person(next) == person(holder) => (Ending::Replaced, None),
        Some(next) => (Ending::TakenOver, Some(person(next))),
    };
    // The end of an expired lock is known, also if it is released later.
    let to = expired.unwrap_or(at);
    let name = |text: &str| shortened(text, LONGEST_NAME).into_owned();
    all.push(PastLock {
        holder: name(holder),
        user: lease
            .api_user()
            .filter(|user| *user != person(holder))
            .map(name),
        ticket: lease.ticket().map(name),
        from: lease.acquired(),
        to: to.to_chrono(),
        end,
        by: by.map(name),
        why: lease
            .reason()
            .filter(|why| !why.is_empty())
            .map(|why| shortened(why, LONGEST_WHY).into_owned())
            .filter(|why| is_short_in_json(why)),
    });
    loop {
        let text = serde_json::to_string(&all).ok()?;
        if text.len() <= LONGEST_HISTORY {
            return Some(text);
        }
        match &mut all[..] {
            // Escapes make it longer.
            [only] => drop(only.why.take().or_else(|| only.ticket.take())?),
            _ => drop(all.remove(0)),
        }
    }
}

/// Whether a reason leaves room for others. A control character takes six bytes in JSON.
fn is_short_in_json(text: &str) -> bool {
    serde_json::to_string(text).is_ok_and(|json| json.len() <= 2 * LONGEST_WHY + "\"\"".len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::repository::Repository;

    fn lease(holder: &str, notes: &serde_json::Value) -> NodeLease {
        let lease = json!({
            "metadata": {"name": "worker-1", "uid": "u", "resourceVersion": "1", "annotations": notes},
            "spec": {
                "holderIdentity": holder, "leaseTransitions": 3, "leaseDurationSeconds": 60,
                "acquireTime": "1970-01-01T00:01:00.000000Z", "renewTime": "1970-01-01T00:02:00.000000Z",
            },
        });
        NodeLease::from_json(lease.to_string().as_bytes(), &Repository::default()).expect("a Lease")
    }

    /// The time this many seconds after 1970.
    fn second(seconds: i64) -> Instant {
        Instant::from_micros(seconds * 1_000_000)
    }

    fn read(history: &str) -> Vec<PastLock> {
        serde_json::from_str(history).expect("a history")
    }

    #[test]
    fn an_end_says_how_and_by_whom() {
        let alice = lease("alice", &json!({}));
        let hold = lease("kubeadm:alice", &json!({}));
        for (lease, at, next, by, end, says, to) in [
            (&alice, 150, None, None, Ending::Released, None, 150),
            (
                &alice,
                150,
                None,
                Some("bob"),
                Ending::Released,
                Some("bob"),
                150,
            ),
            (&alice, 500, None, None, Ending::Released, None, 180),
            (&alice, 500, Some("bob"), None, Ending::Expired, None, 180),
            (&alice, 500, Some("alice"), None, Ending::Expired, None, 180),
            (
                &alice,
                150,
                Some("kubeadm:alice"),
                None,
                Ending::Replaced,
                None,
                150,
            ),
            (
                &alice,
                150,
                Some("kubeadm:bob"),
                None,
                Ending::TakenOver,
                Some("bob"),
                150,
            ),
            (
                &hold,
                500,
                Some("kubeadm:bob"),
                None,
                Ending::TakenOver,
                Some("bob"),
                500,
            ),
            (&hold, 500, None, None, Ending::Released, None, 500),
        ] {
            let history = after(lease, second(at), next, by).expect("a history");
            let [past] = &read(&history)[..] else {
                panic!("{history}");
            };
            assert_eq!((past.end, past.by.as_deref()), (end, says), "{history}");
            assert_eq!(past.from.map(|from| from.timestamp()), Some(60));
            assert_eq!(past.to.map(|to| to.timestamp()), Some(to), "{history}");
        }
        assert_eq!(after(&lease("", &json!({})), second(1), None, None), None);
    }

    #[test]
    fn it_says_what_the_lock_said() {
        let notes = json!({
            "kubectl-maint.dev/acquisition": "3-n", "kubectl-maint.dev/user": "3-alice@corp",
            "kubectl-maint.dev/reason": "new \"kernel\"", "kubectl-maint.dev/ticket": "OPS-7",
        });
        let history = after(&lease("alice", &notes), second(150), None, None);
        assert_eq!(
            history.as_deref(),
            Some(
                r#"[{"holder":"alice","user":"alice@corp","ticket":"OPS-7","from":60,"to":150,"end":"released","why":"new \"kernel\""}]"#
            )
        );
    }

    #[test]
    fn the_oldest_go_first() {
        let mut history = String::new();
        for count in 0..100 {
            let notes = json!({"kubectl-maint.dev/history": history, "kubectl-maint.dev/reason": format!("no. {count}")});
            let lease = lease("alice", &notes);
            history = after(&lease, second(150), None, None).expect("a history");
            assert!(history.len() <= LONGEST_HISTORY, "{history}");
        }
        let all = read(&history);
        assert!(all.len() > 5, "{history}");
        assert_eq!(
            all.last().and_then(|past| past.why.as_deref()),
            Some("no. 99")
        );
    }

    #[test]
    fn a_reason_of_control_characters_does_not_push_the_others_out() {
        let mut history = String::new();
        for reason in ["disk", "kernel", &"\u{1}".repeat(256), &"\"".repeat(256)] {
            let notes =
                json!({"kubectl-maint.dev/history": history, "kubectl-maint.dev/reason": reason});
            let lease = lease("alice", &notes);
            history = after(&lease, second(150), None, None).expect("a history");
        }
        let reasons: Vec<_> = read(&history).into_iter().map(|past| past.why).collect();
        let quotes = Some(format!("{}…", "\"".repeat(LONGEST_WHY - "…".len())));
        let [disk, kernel] = ["disk", "kernel"].map(|reason| Some(reason.to_owned()));
        assert_eq!(reasons, [disk, kernel, None, quotes]);
    }

    #[test]
    fn the_longest_texts_are_cut() {
        for (one, is_recorded) in [("\u{1F600}", true), ("\"", true), ("\u{1}", false)] {
            let long = one.repeat(256);
            let notes = json!({"kubectl-maint.dev/reason": long, "kubectl-maint.dev/ticket": long});
            let lease = lease(&long, &notes);
            let history = after(&lease, second(150), None, Some(&long));
            assert_eq!(history.is_some(), is_recorded, "{one:?}");
            assert!(history.is_none_or(|history| history.len() <= LONGEST_HISTORY));
        }
    }

    #[test]
    fn what_cannot_be_read_stays() {
        for text in ["x", "[{}]", "{}", "[1]", &format!("[{}]", " ".repeat(2000))] {
            let lease = lease("alice", &json!({"kubectl-maint.dev/history": text}));
            assert_eq!(lease.history(), Err(UnreadableHistory), "{text}");
            assert_eq!(after(&lease, second(150), None, None), None, "{text}");
        }
        // A later release may say more.
        let more = r#"[{"holder":"a","end":"released","more":1}]"#;
        let lease = lease("alice", &json!({"kubectl-maint.dev/history": more}));
        assert_eq!(lease.history().map(|all| all.len()), Ok(1));
    }
}
