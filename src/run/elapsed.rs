//! Shows how long something takes, in a line of the terminal that is updated in place.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use crate::ui::Terminal;
use crate::words::waiting::with_elapsed;

/// The time between two updates.
const PERIOD: Duration = Duration::from_secs(1);

/// Waits for `work` and returns its result. Meanwhile, shows `line` with the elapsed time.
pub(crate) async fn show_elapsed<T>(
    terminal: &Terminal,
    line: &str,
    work: impl Future<Output = T>,
) -> T {
    let start = Instant::now();
    let show = async {
        loop {
            tokio::time::sleep(PERIOD).await;
            terminal.live(&with_elapsed(line, start.elapsed()));
        }
    };
    let done = tokio::select! {
        biased;
        done = work => done,
        never = show => match never as Infallible {},
    };
    terminal.end_live();
    done
}
