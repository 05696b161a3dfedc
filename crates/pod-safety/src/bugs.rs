//! Typical mistakes in the rules. Only this package's tests can turn them on. A mistake that no test detects
//! shows that a rule has no test.

/// A mistake in one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// Ignores the heartbeat of a node that is not ready.
    HeartbeatIgnored,
    /// Counts a heartbeat that is far ahead of the clock as recent.
    FutureHeartbeatIsFresh,
    /// Measures the age of a heartbeat with the latest possible time instead of the earliest.
    HeartbeatByLatestClock,
    /// Measures the end of a grace period with the latest possible time instead of the earliest.
    GraceByLatestClock,
    /// Accepts the record of a fencing after a restart.
    RecordOfAnyBoot,
    /// Treats a node that was only cut off as powered off.
    IsolationEndsProcesses,
    /// Returns a fenced node to service without a restart.
    UnfenceWithoutRestart,
    /// Accepts the proof that one machine is off for the next machine with the same name.
    ProofOfAnyMachine,
    /// Records the fencing of a suspect node without waiting until it has stopped reporting.
    SuspectAtOnce,
    /// Treats a small zone without a live node as cut off.
    SmallZoneIsLost,
    /// Treats taints of any effect as evicting, not only `NoExecute`.
    AnyEffectEvicts,
    /// Reports a check that could not read its facts as ok.
    UnreadIsOk,
    /// Keeps an accepted finding accepted when it gets worse.
    WorseIsAccepted,
    /// Lets a user override a final blocker.
    FinalIsOverridden,
    /// Counts a StatefulSet's pod for its own quorum.
    QuorumCountsItself,
    /// Identifies a controller by its name instead of its uid.
    ControllerByName,
    /// Assumes that every Deployment runs its next revision beside the pods of the earlier one.
    RecreateRunsBeside,
    /// Assumes that a Job that is ending does not wait for its pods.
    EndingJobWaitsForNothing,
    /// Assumes that data is not deleted with the pod if the node was fenced.
    FencingKeepsData,
    /// Treats the claim of an ephemeral volume as one that the replacement uses too.
    EphemeralIsShared,
    /// Assumes that a fencing does not delete the pods that are already being deleted.
    EndingIsGone,
    /// Assumes that only the pod's own node can use its devices.
    DevicesAreLocal,
    /// Assumes that access modes prevent writes from two nodes.
    AccessModesPrevent,
    /// Assumes that a claim without a volume was never bound, even if the claim is newer than the pod.
    NewClaimWasNeverBound,
    /// Deletes without a lock if the last lock has expired.
    ExpiredLockIsNotAcquired,
    /// Starts a deletion shortly before the end of its lock.
    DeletionAtTheEnd,
}

#[cfg(not(test))]
pub(crate) const fn active(_: Bug) -> bool {
    false
}

#[cfg(test)]
pub(crate) use self::tests::active;

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::Command;
    use std::sync::LazyLock;

    use super::Bug;

    /// The environment variable that names the mistake.
    const PLANTED: &str = "PLANTED_BUG";

    static ACTIVE: LazyLock<Option<String>> = LazyLock::new(|| env::var(PLANTED).ok());

    pub(crate) fn active(bug: Bug) -> bool {
        let active = ACTIVE.as_ref();
        active.is_some_and(|name| *name == format!("{bug:?}"))
    }

    const BUGS: [Bug; 26] = [
        Bug::HeartbeatIgnored,
        Bug::FutureHeartbeatIsFresh,
        Bug::HeartbeatByLatestClock,
        Bug::GraceByLatestClock,
        Bug::RecordOfAnyBoot,
        Bug::IsolationEndsProcesses,
        Bug::UnfenceWithoutRestart,
        Bug::ProofOfAnyMachine,
        Bug::SuspectAtOnce,
        Bug::SmallZoneIsLost,
        Bug::AnyEffectEvicts,
        Bug::UnreadIsOk,
        Bug::WorseIsAccepted,
        Bug::FinalIsOverridden,
        Bug::QuorumCountsItself,
        Bug::ControllerByName,
        Bug::RecreateRunsBeside,
        Bug::EndingJobWaitsForNothing,
        Bug::FencingKeepsData,
        Bug::EphemeralIsShared,
        Bug::EndingIsGone,
        Bug::DevicesAreLocal,
        Bug::AccessModesPrevent,
        Bug::NewClaimWasNeverBound,
        Bug::ExpiredLockIsNotAcquired,
        Bug::DeletionAtTheEnd,
    ];

    /// Without a planted mistake, the same tests pass.
    #[test]
    fn each_bug_fails_a_test() {
        let tests = env::current_exe().expect("this program");
        let missed: Vec<Bug> = BUGS
            .into_iter()
            .filter(|bug| {
                let mut run = Command::new(&tests);
                // The model takes longer than all other tests together.
                let run = run.args(["--skip", "bugs::", "--skip", "suspect_model::"]);
                let run = run.env(PLANTED, format!("{bug:?}")).output();
                let output = String::from_utf8_lossy(&run.expect("tests").stdout).into_owned();
                assert!(output.contains("test result: "), "{output}");
                !output.contains("test result: FAILED")
            })
            .collect();
        assert_eq!(missed, [], "no test fails");
    }
}
