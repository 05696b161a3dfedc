//! A command that changes locks, from its options to the first request.

use std::time::Duration;

use maintenance_lease::protocol::Now;

use super::interruption::in_time;
use super::node_progress::NodeProgress;
use super::problems::Problems;
use super::session::{Session, Start};
use crate::args::change::ChangingArgs;
use crate::args::until::Until;
use crate::args::wait::WaitingArgs;
use crate::error::{Failure, Verb};

/// A command that changes locks: its session, and the flags that all such commands have.
pub(crate) struct LockCommand<'a> {
    pub(crate) session: Session<'a>,
    pub(crate) args: &'a ChangingArgs,
    pub(crate) verb: Verb,
    /// When a hold is expected to end. That is checked before anything is asked.
    pub(crate) expected_end: Option<Until>,
    /// How long finding and reading the nodes may take; `None`: as long as requests may.
    pub(super) limit: Option<Duration>,
}

impl<'a> LockCommand<'a> {
    /// Opens a session. Sends no request, except perhaps for the API user.
    ///
    /// # Errors
    /// If the API server can't be reached, or if the caller's identity is not valid for a holder.
    pub(crate) async fn begin(
        start: &Start<'a>,
        args: &'a ChangingArgs,
        verb: Verb,
    ) -> Result<Self, Failure> {
        let acquires = matches!(verb, Verb::Acquire | Verb::Hold | Verb::With);
        let session = start.open_for_writing(&args.write, acquires).await?;
        Ok(Self {
            session,
            args,
            verb,
            expected_end: None,
            limit: None,
        })
    }

    /// The line that counts its nodes on a terminal.
    pub(crate) fn node_progress(&self) -> NodeProgress<'_> {
        NodeProgress::new(self.session.terminal, self.verb)
    }

    /// The same for a command that locks nodes. No request before a wait takes longer than the wait may.
    ///
    /// # Errors
    /// As [`begin`](Self::begin), and if there is no answer in time.
    pub(crate) async fn begin_locking(
        start: &Start<'a>,
        args: &'a ChangingArgs,
        verb: Verb,
        waiting: WaitingArgs,
    ) -> Result<Self, Failure> {
        // A limit of zero tries once.
        let limit = waiting.timeout.filter(|limit| !limit.is_zero());
        let command = in_time(limit, Self::begin(start, args, verb)).await?;
        Ok(Self { limit, ..command })
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.args.write.is_dry_run()
    }

    /// The present, in server time.
    ///
    /// # Errors
    /// If it is not known, because this machine was paused after the last answer.
    pub(crate) fn now(&self) -> Result<Now, Failure> {
        let now = self.session.locks.server_time().now();
        match now.bounded {
            true => Ok(now),
            false => Err(Failure::UnknownTime),
        }
    }

    /// Reports a failure that ends the command, for each of `nodes`.
    ///
    /// # Errors
    /// That failure, as one that was reported.
    pub(crate) fn report_failure<T>(
        &self,
        nodes: &[String],
        result: Result<T, Failure>,
    ) -> Result<T, Failure> {
        result.map_err(|failure| {
            let problems = Problems::changing(&self.session, self.verb);
            match problems.report_for(nodes, &failure, self.args.output.format()) {
                Ok(()) => Failure::Reported(failure.kind(Some(self.verb))),
                Err(unprintable) => unprintable,
            }
        })
    }
}
