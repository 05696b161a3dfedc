//! The signals by which a person or the system asks this process to end.

/// Completes at Ctrl-C or Ctrl-\, or where the process is asked to end, as by `timeout` or a cancelled
/// job, or where its terminal is gone. What this process was started to ignore, as by `nohup`, stays
/// ignored.
pub(crate) async fn asked_to_end() {
    tokio::select! {
        () = unix::interrupted() => {}
        () = unix::terminated() => {}
        () = unix::hung_up() => {}
        () = unix::quit() => {}
    }
}

#[cfg(unix)]
mod unix {
    use supervisor::{Ignored, Signal};
    use tokio::signal::unix::{SignalKind, signal};

    pub(super) async fn interrupted() {
        sent(Signal::INT, false).await;
    }

    pub(super) async fn terminated() {
        sent(Signal::TERM, false).await;
    }

    /// What was taken is given back first: a core of this process tells nobody anything.
    pub(super) async fn quit() {
        sent(Signal::QUIT, false).await;
    }

    /// Completes where the terminal is gone. Where it can't be told whether that is meant to be
    /// survived, the system's own way of ending stays.
    pub(super) async fn hung_up() {
        sent(Signal::HUP, true).await;
    }

    /// Completes when it is sent; never where that is ignored, or can't be heard.
    async fn sent(wanted: Signal, unless_known: bool) {
        let is_ignored = Ignored::now().map_or(unless_known, |ignored| ignored.has(wanted));
        if !is_ignored && let Ok(mut signal) = signal(SignalKind::from_raw(wanted.0)) {
            signal.recv().await;
        } else {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(not(unix))]
mod unix {
    pub(super) async fn interrupted() {
        // Nobody can interrupt what can't be told about signals.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub(super) async fn terminated() {
        std::future::pending().await
    }

    pub(super) async fn hung_up() {
        std::future::pending().await
    }

    pub(super) async fn quit() {
        std::future::pending().await
    }
}
