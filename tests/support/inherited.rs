//! Signals that the parent of the tests ignores, for example under `nohup` or in a background job of a shell. The
//! processes that the tests start must not ignore them.

use std::sync::Once;

use tokio::signal::unix::{SignalKind, signal};

/// Installs a handler for each of HUP, INT and QUIT that is ignored. A handled signal has its default effect in a
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
