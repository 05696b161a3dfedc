//! The signals by which a person or the system asks this process to end.

/// Completes at Ctrl-C, or where the process is asked to end, as by `timeout` or a cancelled job, or
/// where its terminal is gone.
pub(crate) async fn asked_to_end() {
    // Nobody can interrupt what can't be told about signals.
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = interrupted => {}
        () = unix::terminated() => {}
        () = unix::hung_up() => {}
    }
}

#[cfg(unix)]
mod unix {
    use tokio::signal::unix::{SignalKind, signal};

    pub(super) async fn terminated() {
        sent(SignalKind::terminate()).await;
    }

    /// Completes where the terminal is gone; never where that is meant to be survived, as under
    /// `nohup`, or where it can't be told: then the system's own way of ending stays.
    pub(super) async fn hung_up() {
        let status = std::fs::read_to_string("/proc/self/status");
        match status {
            Ok(status) if !ignores_hangups(&status) => sent(SignalKind::hangup()).await,
            _ => std::future::pending().await,
        }
    }

    async fn sent(kind: SignalKind) {
        match signal(kind) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    }

    /// Whether the process of this `/proc/PID/status` was started with hang-ups ignored.
    fn ignores_hangups(status: &str) -> bool {
        status
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:"))
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .is_some_and(|mask| mask & 1 == 1)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_lowest_bit_of_the_ignored_signals_is_the_hangup() {
            let status =
                |mask: &str| format!("Name:\tx\nSigIgn:\t{mask}\nSigCgt:\t0000000000000001\n");
            assert!(ignores_hangups(&status("0000000000001001")));
            assert!(!ignores_hangups(&status("0000000000001000")));
            assert!(!ignores_hangups("Name:\tx\n"));
        }
    }
}

#[cfg(not(unix))]
mod unix {
    pub(super) async fn terminated() {
        std::future::pending().await
    }

    pub(super) async fn hung_up() {
        std::future::pending().await
    }
}
