//! Signals that the parent of the tests ignores, such as `nohup` or a shell that runs a background job,
//! must not be ignored by the processes that the tests start.

use std::sync::Once;

use tokio::signal::unix::{SignalKind, signal};

/// Catches those of HUP, INT and QUIT that are ignored: what is caught has its default effect in a
/// process that is started later.
pub(crate) fn catch_what_is_ignored() {
    static CAUGHT: Once = Once::new();
    CAUGHT.call_once(catch);
}

fn catch() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let _entered = runtime.enter();
    for kind in [
        SignalKind::hangup(),
        SignalKind::interrupt(),
        SignalKind::quit(),
    ] {
        if ignored & (1 << (kind.as_raw_value() - 1)) != 0 {
            drop(signal(kind).expect("it can be caught"));
        }
    }
}
