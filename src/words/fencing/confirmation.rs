//! What is asked before a node is fenced or unfenced.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::{Now, State};
use pod_safety::fencing::Record;

use super::progress::was_fenced;
use crate::text::escape;
use crate::words::holder_name::person;
use crate::words::lock::about;

/// What an operator confirms: facts, and a question.
pub(crate) struct Question {
    pub(crate) facts: Vec<String>,
    pub(crate) text: String,
}

impl Question {
    /// A question about one node of the cluster at `place`.
    fn new(place: &str, facts: impl IntoIterator<Item = String>, text: String) -> Self {
        let facts = facts.into_iter().map(|fact| format!("  {fact}"));
        let place = format!("{place}: 1 node");
        Self {
            facts: [place].into_iter().chain(facts).collect(),
            text,
        }
    }

    /// Before `node` is fenced; its name is the answer. `suspect_hook`: if the node still reports, what runs, and whether the node is
    /// put on hold for that.
    pub(crate) fn to_fence(place: &str, node: &str, suspect_hook: Option<(&str, bool)>) -> Self {
        let suspected = suspect_hook.map(|(hook, takes_hold)| {
            let hook = escape(hook);
            [
                format!("node/{node} still reports to Kubernetes: its pods may still be running"),
                match takes_hold {
                    true => format!(
                        "It will be put on hold and cordoned, and then {hook} will run on this machine."
                    ),
                    false => format!("{hook} will run on this machine, under your lock."),
                },
            ]
        });
        Self::new(
            place,
            suspected.into_iter().flatten(),
            format!("To fence node/{node}, type its name"),
        )
    }

    /// Before somebody else's fencing is undone. The reason of its hold may be that of an earlier run that did not finish, so the
    /// record counts if there is one.
    pub(crate) fn to_unfence(
        place: &str,
        node: &str,
        hold: Option<&NodeLease>,
        record: Option<&Record>,
        now: Now,
    ) -> Self {
        let of_record = record.map(|record| was_fenced(node, record));
        let fact = of_record.or_else(|| {
            let hold = hold?;
            Some(format!(
                "node/{node} is on hold by {}{}",
                person(hold),
                about(hold, State::AdminHold, now)
            ))
        });
        let and_end = hold.map(|hold| format!(" and end the hold of {}", person(hold)));
        let text = format!("Unfence node/{node}{}?", and_end.unwrap_or_default());
        Self::new(place, fact, text)
    }

    /// Before a hold without a record is ended.
    pub(crate) fn to_end_hold(place: &str, hold: &NodeLease, now: Now) -> Self {
        let (node, person) = (hold.node(), person(hold));
        let about = about(hold, State::AdminHold, now);
        let facts = [
            format!(
                "node/{node} is not fenced, but on hold by {person}{about}; a `fence` command is running or was \
                 interrupted"
            ),
            "Answer yes only if no `fence` command is running for this node.".to_owned(),
        ];
        Self::new(place, facts, format!("End the hold on node/{node}?"))
    }
}
