//! Why an object is stuck: a paragraph with the next commands, and as data, which `docs/json.md` documents.

use crate::layout::table::{GAP, with_words};
use crate::layout::wrap::hanging;
use maintenance_lease::protocol::Now;
use pod_safety::why::{self as safety, StuckCode, StuckState};
use schemars::JsonSchema;
use serde::Serialize;

use super::data::{ApiVersion, List, ListEntry, Time, kind};
use crate::object::{Kind, Object};
use crate::words::hint_command::Program;
use crate::words::why::{self, Step};

/// The most columns of a paragraph, also used if the terminal's width is unknown.
const WIDTH: usize = 100;

/// Diagnoses as data.
pub(crate) type DiagnosisList<'a> = List<kind::DiagnosisList, Diagnosis<'a>>;

/// Why an object is stuck.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Diagnosis<'a> {
    api_version: ApiVersion,
    kind: kind::Diagnosis,
    /// The kind of the object: pod, pvc or namespace. Values may be added.
    resource: &'static str,
    /// Absent for a namespace.
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    name: &'a str,
    /// How far it got.
    state: StuckState,
    /// The node of a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    /// The end of a pod's grace period, if the pod is being deleted. It may be in the future.
    #[serde(skip_serializing_if = "Option::is_none")]
    grace_until: Option<Time>,
    /// Since when another object is being deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    terminating_since: Option<Time>,
    /// Why it gets no further, the most important first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<StuckReason>,
    /// What waits for it, in words for people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocks: Vec<String>,
    /// What to run next, the safest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next: Vec<Step>,
    /// What could not be read. Other reasons may be missing for this.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unread: Vec<Unread>,
}

/// A reason why an object is stuck.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct StuckReason {
    code: StuckCode,
    /// For people; may change.
    message: String,
}

impl StuckReason {
    pub(crate) fn of(reason: &safety::Reason, now: Now) -> Self {
        Self {
            code: reason.into(),
            message: why::sentence(reason, now),
        }
    }
}

/// Something that could not be read.
#[derive(Debug, Serialize, JsonSchema)]
struct Unread {
    /// What, in words.
    what: &'static str,
    /// Why not.
    message: String,
}

/// What is known of an object, and what to run next.
pub(crate) struct Finding<'a> {
    pub(crate) subject: &'a Object,
    pub(crate) found: &'a safety::Diagnosis,
    pub(crate) steps: Vec<Step>,
}

impl<'a> Finding<'a> {
    pub(crate) fn new(
        subject: &'a Object,
        found: &'a safety::Diagnosis,
        program: &Program,
        now: Now,
    ) -> Self {
        Self {
            subject,
            found,
            steps: why::steps(subject, found, program, now),
        }
    }

    /// The paragraph, or a line per reason if `wide`, and the next commands.
    pub(crate) fn text(&self, wide: bool, fit: Option<usize>, now: Now) -> String {
        let mut text = match wide {
            true => self.lines(now),
            false => {
                let paragraph = why::paragraph(self.subject, self.found, now);
                hanging("", &paragraph, Some(fit.unwrap_or(WIDTH).min(WIDTH)))
            }
        };
        if let Some(next) = next(&self.steps) {
            text.push_str(&format!("\n\n{next}"));
        }
        text
    }

    /// The same, with each reason on its own line after its code.
    fn lines(&self, now: Now) -> String {
        let opening = why::opening(self.subject, self.found, now);
        let reasons = self.found.reasons.iter().map(|reason| {
            let code = format!("  {}", StuckCode::from(reason));
            (vec![code], why::sentence(reason, now))
        });
        let reasons = with_words(reasons, &[], GAP, None);
        let lines = [opening, reasons]
            .into_iter()
            .filter(|lines| !lines.is_empty());
        let lines = lines.chain(why::waiting(self.found));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// As data.
    pub(crate) fn list(&'a self, now: Now) -> DiagnosisList<'a> {
        let found = self.found;
        let reasons = { found.reasons.iter() }.map(|reason| StuckReason::of(reason, now));
        let unread = found.unread.iter().map(|unread| Unread {
            what: unread.what,
            message: unread.why.to_string(),
        });
        let since = match found.state {
            safety::State::Ending { until: since }
            | safety::State::Terminating { since }
            | safety::State::Finalizing { since } => Time::of(since),
            _ => None,
        };
        let (grace_until, terminating_since) = match self.subject.kind {
            Kind::Pod => (since, None),
            _ => (None, since),
        };
        List::new(vec![Diagnosis {
            api_version: ApiVersion::V2,
            kind: kind::Diagnosis::default(),
            resource: self.subject.kind.word(),
            namespace: match self.subject.kind {
                Kind::Namespace => "",
                _ => &self.subject.namespace,
            },
            name: &self.subject.name,
            state: found.state.into(),
            node: found.node.as_deref(),
            grace_until,
            terminating_since,
            reasons: reasons.collect(),
            blocks: why::waiting(found).into_iter().collect(),
            next: self.steps.clone(),
            unread: unread.collect(),
        }])
    }
}

impl ListEntry for Diagnosis<'_> {
    fn name(&self) -> Option<String> {
        Some(format!("{}/{}", self.resource, self.name))
    }
}

/// The next commands for people, each below what it is for. `None` if there are none.
pub(crate) fn next(steps: &[Step]) -> Option<String> {
    let lines = steps.iter().map(|Step { command, about, .. }| {
        debug_assert!(
            !about.contains(['\'', '"', '`', ';', '&', '|', '(', '<', '>', '$', '*', '?'])
        );
        format!("\n  # {about}\n  {command}")
    });
    (!steps.is_empty()).then(|| format!("Next:{}", lines.collect::<String>()))
}
