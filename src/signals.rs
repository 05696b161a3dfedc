//! The signals that ask this process to end.

use crate::platform;

/// Completes at Ctrl-C or Ctrl-\, if the terminal is gone, or if the process is asked to end, as by
/// `timeout` or a canceled job. Signals that were ignored at the start, as by `nohup`, stay ignored.
pub(crate) async fn termination() {
    tokio::select! {
        () = platform::interrupted() => {}
        () = platform::terminated() => {}
        () = platform::hung_up() => {}
        () = platform::quit() => {}
    }
}
