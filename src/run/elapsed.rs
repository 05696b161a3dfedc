//! How long something takes, in one line on a terminal that is updated in place.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use crate::ui::Terminal;
use crate::words::waiting::with_elapsed;

/// The time between two updates.
const PERIOD: Duration = Duration::from_secs(1);

/// The result of `work`. Until it is done, `line` and the time that has passed are shown.
pub(crate) async fn show_elapsed<T>(
    terminal: &Terminal,
    line: &str,
    work: impl Future<Output = T>,
) -> T {
    let begun = Instant::now();
    let show = async {
        loop {
            tokio::time::sleep(PERIOD).await;
            terminal.live(with_elapsed(line, begun.elapsed()));
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
