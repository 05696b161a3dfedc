//! Everything about a node's lock on one page, as `kubectl describe` prints it.

use crate::layout::table::with_words;
use chrono::{DateTime, Utc};
use maintenance_lease::protocol::{Instant, Now, State};
use maintenance_lease::{NodeLease, NodeLookup, Waiter};
use pod_safety::words::age;

use super::status::{Heartbeat, View};
use crate::text::escape;
use crate::words::cells::{last_reason, none, time_left, unknown, unreadable};
use crate::words::health;
use crate::words::holder_name::of_node;
use crate::words::keys;
use crate::words::lock::renewed;
use crate::words::next_steps::{self, Reader};
use crate::words::other_tools::sentence;
use crate::words::state::{ShownState, flag_words};
use crate::words::time::{remaining, rfc3339};
use crate::words::waiting;

/// A part of the page: a headline, and keys with their values. A value may have several lines.
struct Section {
    title: &'static str,
    entries: Vec<(String, String)>,
}

impl Section {
    fn new(title: &'static str) -> Self {
        Self {
            title,
            entries: Vec::new(),
        }
    }

    fn add(&mut self, key: &str, value: impl Into<String>) {
        self.entries.push((key.to_owned(), value.into()));
    }

    /// Adds a value if there is one.
    fn add_some(&mut self, key: &str, value: Option<String>) {
        if let Some(value) = value {
            self.add(key, value);
        }
    }

    fn text(&self) -> String {
        let entries = self.entries.iter();
        let entries = entries.map(|(key, value)| (vec![format!("  {key}:")], value.clone()));
        format!("{}:\n{}", self.title, with_words(entries, &[], "  ", None))
    }
}

/// The page about a node for `reader`, with those who wait for its lock.
pub(crate) fn page(view: &View<'_>, waiters: &[Waiter], reader: &Reader<'_>, now: Now) -> String {
    let sections = [
        lock(view, waiters, now),
        node(view, now),
        commands(view, reader, now),
    ];
    let sections = sections.each_ref().map(Section::text).join("\n");
    format!("Name: {}\n{sections}", escape(view.node))
}

fn lock(view: &View<'_>, waiters: &[Waiter], now: Now) -> Section {
    let mut section = Section::new("Lock");
    section.add("State", ShownState::of(view.lease, now).word());
    let Some(lease) = view.lease else {
        return section;
    };
    let at = |time: Option<DateTime<Utc>>| time.map(|time| past(Instant::from(time), now));
    if let Some(holder) = lease.holder() {
        section.add("Holder", of_node(holder));
        let reason = lease.reason().filter(|reason| !reason.trim().is_empty());
        section.add("Reason", reason.map_or_else(none, in_lines));
        section.add_some("Ticket", lease.ticket().map(in_lines));
        section.add_some("Acquired", at(lease.acquired()));
        section.add_some("Renewed", at(lease.renewed()));
        section.add_some(end_key(lease, now), end(lease, now));
        section.add_some("Lock ID", lease.lock_id().map(|id| escape(&id.to_string())));
        let waiters = waiters.iter().map(|it| waiting::waiter(it, now));
        let waiters: Vec<String> = waiters.collect();
        section.add_some("Waiting", (!waiters.is_empty()).then(|| waiters.join("\n")));
    }
    let flags = flag_words(lease, now);
    if !flags.is_empty() {
        section.add("Flags", flags.join(", "));
    }
    section.add("Transitions", lease.transitions().to_string());
    let last = lease.last_holder().filter(|last| !last.is_empty());
    section.add_some("Last holder", last.map(of_node));
    if lease.holder().is_none() {
        let by = lease.released_by().map(|by| format!(" by {}", of_node(by)));
        let released = at(lease.released_at()).map(|at| at + &by.unwrap_or_default());
        section.add_some("Released", released);
        section.add_some("Note", last_reason(lease).map(in_lines));
    }
    section
}

fn end_key(lease: &NodeLease, now: Now) -> &'static str {
    match lease.state(now) {
        State::AdminHold => "Expected end",
        State::Expired { .. } => "Expired",
        State::Held { .. } | State::Free => "Expires",
    }
}

/// When the lock expires, has expired, or is expected to end.
fn end(lease: &NodeLease, now: Now) -> Option<String> {
    let until = lease.expected_end(now)?;
    if until == Instant::UNREADABLE {
        return Some(unreadable());
    }
    let left = time_left(lease, now);
    let words = match lease.is_overdue(now) || lease.state(now).is_ending(now) {
        true => left,
        false => format!("in {left}{}", renewed(lease, now)),
    };
    Some(format!("{} ({words})", date(until)))
}

fn node(view: &View<'_>, now: Now) -> Section {
    let mut section = Section::new("Node");
    section.add(
        "Status",
        match view.row {
            NodeLookup::Row(row) => health::status(row, view.health, false, now),
            NodeLookup::Missing => health::GONE.to_owned(),
            NodeLookup::Forbidden | NodeLookup::Unread => unknown(),
        },
    );
    section.add(
        "Heartbeat",
        match view.heartbeat {
            Heartbeat::At(Instant::UNREADABLE) => unreadable(),
            Heartbeat::At(instant) => past(instant, now),
            Heartbeat::Missing => none(),
            Heartbeat::Unknown => unknown(),
        },
    );
    section.add_some(
        "Fencing",
        view.annotations
            .and_then(|annotations| annotations.words(now)),
    );
    let set = view.keys.and_then(keys::set);
    let set = set.into_iter();
    let set = set.chain(keys::mismatch(view.keys, view.lease, now));
    let set: Vec<String> = set.collect();
    section.add_some("Set by locks", (!set.is_empty()).then(|| set.join("\n")));
    let findings = view.findings.unwrap_or_default().iter();
    let findings: Vec<String> = findings.map(|it| sentence(it, now)).collect();
    section.add_some(
        "Other tools",
        (!findings.is_empty()).then(|| findings.join("\n")),
    );
    section
}

fn commands(view: &View<'_>, reader: &Reader<'_>, now: Now) -> Section {
    let mut section = Section::new("Next commands");
    let View {
        node,
        lease,
        row,
        health,
        annotations,
        ..
    } = *view;
    let hook = annotations.and_then(|annotations| annotations.announced(now));
    for (what, command) in next_steps::all(node, lease, row.row(), health, hook, reader, now) {
        section.add(what, command);
    }
    section
}

/// Text of any user, with its own line breaks and nothing else that acts on a terminal.
fn in_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(escape).collect();
    lines.join("\n")
}

/// A time that has passed, unless the writer's clock is ahead.
fn past(instant: Instant, now: Now) -> String {
    match instant {
        Instant::UNREADABLE => unreadable(),
        _ if instant > now.latest => {
            format!("{} (in {})", date(instant), remaining(instant - now.latest))
        }
        _ => format!("{} ({} ago)", date(instant), age(now.latest - instant)),
    }
}

fn date(instant: Instant) -> String {
    instant.to_chrono().map_or_else(unreadable, rfc3339)
}
