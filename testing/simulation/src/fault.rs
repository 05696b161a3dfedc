//! The kinds of faults.

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An answer took over a tenth of a second.
    Delay,
    /// A request never got there.
    LostRequest,
    /// A request arrived long after its sender had timed out.
    LateRequest,
    /// An answer did not come back.
    LostAnswer,
    /// A change of a Lease was committed, and its author was not told.
    CommitThenDrop,
    /// A request was refused on the way: too many, or a server that is away.
    Refusal,
    /// Something on the way answered with an error of its own what had been carried out.
    FalseError,
    /// A watch held an event back.
    WatchStall,
    /// A watch broke off.
    WatchCut,
    /// A watch began at a version that was no longer known (410).
    TooOld,
    /// A watch said something again, after what came later.
    RepeatedEvent,
    /// The API server restarted.
    ApiRestart,
    /// A restart ended a request on its way.
    CutRequest,
    /// Another tool's writes made conflicts of a client's, again and again.
    RepeatedConflicts,
    /// A client's wall clock was further off than clocks may be apart.
    ClockOffset,
    /// A client's clocks ran too fast or too slowly.
    Drift,
    /// A client's wall clock was stepped.
    ClockStep,
    /// API servers' clocks were apart.
    ServerClocks,
    /// The processes of a machine were stopped.
    Stop,
    /// A machine slept.
    Suspend,
    /// A virtual machine stood still, and its boot clock with it.
    Pause,
    /// A process ended without a word.
    Crash,
    /// Somebody changed a Lease by hand.
    HandEdit,
    /// A Lease was deleted.
    Deletion,
    /// A Node was deleted together with its Lease, and made again.
    NodeReplacement,
    /// An administrator ended another's acquisition.
    AdminBreak,
    /// A policy of the cluster shortened what was asked for.
    ShortenedLease,
    /// Something on the way answered with a 404 page of its own.
    MissingPage,
    /// Something on the way answered with a page of its own, as a success.
    LoginPage,
    /// A proxy sent a write again, so its author got a conflict with its own write.
    RepeatedWrite,
    /// An answer was cut short, as if it were complete.
    Truncation,
    /// A list was cut short, as if it were complete.
    TruncatedList,
    /// An API server's clock was stepped back.
    ServerStep,
    /// A virtual machine stood still, and all of its clocks with it.
    Halt,
    /// A machine stood still while an answer was on its way to it.
    FreezeAtAnswer,
    /// A client lacks the right to watch.
    NoWatch,
    /// A Node was marked for deletion for a while before it went.
    NodeTermination,
}

impl Fault {
    /// Every kind, and how a table calls it.
    pub const ALL: [(Self, &'static str); 37] = [
        (Self::Delay, "answers delayed"),
        (Self::LostRequest, "requests lost"),
        (Self::LateRequest, "requests that came late"),
        (Self::LostAnswer, "answers lost"),
        (Self::CommitThenDrop, "commits whose answer was lost"),
        (Self::Refusal, "requests refused on the way"),
        (Self::FalseError, "errors for what was carried out"),
        (Self::WatchStall, "watch events held back"),
        (Self::WatchCut, "watches cut off"),
        (Self::TooOld, "watches too old (410)"),
        (Self::RepeatedEvent, "watch events repeated"),
        (Self::ApiRestart, "API server restarts"),
        (Self::CutRequest, "requests cut by a restart"),
        (Self::RepeatedConflicts, "repeated conflicts"),
        (Self::ClockOffset, "clocks off by over 3 s"),
        (Self::Drift, "clocks that drift"),
        (Self::ClockStep, "clocks stepped"),
        (Self::ServerClocks, "API servers' clocks apart"),
        (Self::Stop, "processes stopped"),
        (Self::Suspend, "machines suspended"),
        (Self::Pause, "machines paused"),
        (Self::Crash, "processes crashed"),
        (Self::HandEdit, "Leases edited by hand"),
        (Self::Deletion, "Leases deleted"),
        (Self::NodeReplacement, "Nodes replaced"),
        (Self::AdminBreak, "locks broken by administrators"),
        (Self::ShortenedLease, "leases shortened by a policy"),
        (Self::MissingPage, "pages that say 404"),
        (Self::LoginPage, "pages that say 200"),
        (Self::RepeatedWrite, "writes sent again on the way"),
        (Self::Truncation, "answers cut short"),
        (Self::TruncatedList, "lists cut short"),
        (Self::ServerStep, "API servers' clocks stepped back"),
        (Self::Halt, "machines halted with all clocks"),
        (Self::FreezeAtAnswer, "machines stopped before an answer"),
        (Self::NoWatch, "clients that may not watch"),
        (Self::NodeTermination, "Nodes marked for deletion"),
    ];
}
