//! The signals by which a person or the system asks this process to end.

use crate::platform;

/// Completes at Ctrl-C or Ctrl-\, or where the process is asked to end, as by `timeout` or a cancelled
/// job, or where its terminal is gone. What this process was started to ignore, as by `nohup`, stays
/// ignored.
pub(crate) async fn asked_to_end() {
    tokio::select! {
        () = platform::interrupted() => {}
        () = platform::terminated() => {}
        () = platform::hung_up() => {}
        () = platform::quit() => {}
    }
}
