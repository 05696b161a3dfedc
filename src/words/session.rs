//! The connection and its clocks.

use maintenance_lease::ClockWarning;
use maintenance_lease::protocol::Span;
use pod_safety::words::age;

use crate::text::escape;

/// The cluster and the user, for confirmations.
pub(crate) fn place(context: Option<&str>, server: &str, user: Option<&str>) -> String {
    let parts = [
        context.map(|context| format!("context {}", escape(context))),
        Some(format!("server {server}")),
        user.map(|user| format!("user {}", escape(user))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Requests are slow.
pub(crate) const STILL_WAITING: &str = "still waiting for the API server";

/// A credential plugin takes its time.
pub(crate) fn slow_plugin(command: &str) -> String {
    format!("waiting for credential plugin {}", escape(command))
}

/// The clocks differ.
pub(crate) fn clocks(warning: ClockWarning) -> String {
    match warning {
        ClockWarning::LocalClock { ahead } if ahead.as_micros() > 0 => format!(
            "the local clock is {} ahead of the API server's; server time is used",
            age(ahead)
        ),
        ClockWarning::LocalClock { ahead } => format!(
            "the local clock is {} behind the API server's; server time is used",
            age(Span::micros(-ahead.as_micros()))
        ),
        ClockWarning::ServersDisagree { by } => format!(
            "the API server's Date headers differ by {}: several servers or a proxy disagree about \
             the time. The earliest decides what has expired",
            age(by)
        ),
    }
}
