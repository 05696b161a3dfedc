//! Typical mistakes in the rules, each behind a switch that only this package's tests can turn on. They show that a rule
//! without a test does not exist.

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A heartbeat says nothing about a node that is not ready.
    HeartbeatIgnored,
    /// A heartbeat that is far ahead of the clock is recent.
    FutureHeartbeatIsFresh,
    /// The age of a heartbeat is measured with the latest time that it may be, not with the earliest.
    HeartbeatByLatestClock,
    /// The same of a grace period.
    GraceByLatestClock,
    /// A record of a fencing counts after a restart.
    RecordOfAnyBoot,
    /// A node that was cut off counts as powered off.
    IsolationEndsProcesses,
    /// A fenced node goes back into service without a restart.
    UnfenceWithoutRestart,
    /// The proof that one machine is off counts for the next one of that name.
    ProofOfAnyMachine,
    /// A suspect is recorded without waiting until it has stopped reporting.
    SuspectAtOnce,
    /// A small zone without a live node counts as cut off.
    SmallZoneIsLost,
    /// Any taint of the node's shutdown evicts its pods.
    AnyEffectEvicts,
    /// What could not be read is ok.
    UnreadIsOk,
    /// An accepted finding stays accepted when it gets worse.
    WorseIsAccepted,
    /// What can't be overridden is.
    FinalIsOverridden,
    /// A member of a StatefulSet counts for its own quorum.
    QuorumCountsItself,
    /// A controller is known by its name.
    ControllerByName,
    /// Access modes prevent writes.
    AccessModesPrevent,
    /// A claim without a volume never had one, even if it is newer than the pod.
    NewClaimWasNeverBound,
    /// A pod of any controller is a replacement.
    ReplacementOfAnyController,
    /// A pod that was there before is a replacement.
    EarlierReplacement,
    /// A replacement on a node that was lost too is back.
    ReplacementOnLostNode,
    /// A pod of a DaemonSet is replaced on a node whose taints keep it off.
    DaemonPodOnUnfitNode,
    /// A deletion begins without a lock because the last one has expired.
    ExpiredLockIsNotAcquired,
    /// A deletion begins shortly before the end of its lock.
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

    /// The variable that names the mistake.
    const PLANTED: &str = "PLANTED_BUG";

    static ACTIVE: LazyLock<Option<String>> = LazyLock::new(|| env::var(PLANTED).ok());

    pub(crate) fn active(bug: Bug) -> bool {
        let active = ACTIVE.as_ref();
        active.is_some_and(|name| *name == format!("{bug:?}"))
    }

    const BUGS: [Bug; 24] = [
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
        Bug::AccessModesPrevent,
        Bug::NewClaimWasNeverBound,
        Bug::ReplacementOfAnyController,
        Bug::EarlierReplacement,
        Bug::ReplacementOnLostNode,
        Bug::DaemonPodOnUnfitNode,
        Bug::ExpiredLockIsNotAcquired,
        Bug::DeletionAtTheEnd,
    ];

    /// The same tests pass without any.
    #[test]
    fn each_bug_fails_a_test() {
        let tests = env::current_exe().expect("this program");
        let missed: Vec<Bug> = BUGS
            .into_iter()
            .filter(|bug| {
                let mut run = Command::new(&tests);
                // The model takes longer than all others together.
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
