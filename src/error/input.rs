//! What can be wrong with the arguments of a command, its environment, or a list of nodes.

use std::path::PathBuf;
use std::time::Duration;

use maintenance_lease::protocol::identity::InvalidIdentity;

use crate::object::Kind;

/// Why the input of a command is invalid.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum InputError {
    /// No nodes are selected. The command may have `--mine`.
    NoNodes { mine: bool },
    /// Nodes are selected in more than one way.
    ManySelections(Vec<&'static str>),
    /// A label selector that would match everything.
    EmptySelector,
    /// A label selector that no server accepts.
    LongSelector { most: usize },
    /// Another kind than a node.
    NotANode(String),
    /// Not a name that an object of this kind can have.
    ObjectName { kind: Kind, name: String },
    /// Several names in one word.
    NodeNames(String),
    /// A line of a list is invalid.
    Line {
        /// The list; `-` is standard input.
        list: PathBuf,
        /// Its number, from 1.
        number: usize,
        error: Box<InputError>,
    },
    /// A list is longer than `most` bytes, or is not UTF-8; `-` is standard input.
    NotAList {
        list: PathBuf,
        /// The longest list in bytes, if it is too long.
        longest: Option<u64>,
    },
    /// A time that has passed.
    Past,
    /// A time that no calendar has.
    BeyondCalendar,
    /// A lease too short to be renewed in time.
    ShortLease {
        lease: Duration,
        /// The time limit of a request.
        request: Duration,
        /// The time to end the command.
        grace: Duration,
        /// The shortest duration for these, which may be more than a lock can last.
        shortest: Duration,
    },
    /// Not an identity that can hold locks.
    Holder(InvalidIdentity),
    /// `-o lock-id` with a flag that leaves no lock ids to print.
    NoLockIds { flag: &'static str },
    /// `-o lock-id` is given while waiting for free nodes.
    NoLockIdOfFree,
    /// No lock id was given.
    MissingLockId { variable: &'static str },
    /// The lock ids that were given are for other nodes.
    NoLockIdOf {
        /// The flag or variable that has them.
        source: &'static str,
        node: String,
    },
    /// There is a lock id, but no node for it.
    NoNodeOfLockId,
    /// One lock id was given for several nodes.
    LockIdOfMany {
        /// The flag or variable that has it.
        source: &'static str,
    },
    /// Lock ids were given for nodes that are selected without their names.
    LockIdsOfUnnamed {
        /// The flag or variable that has them.
        source: &'static str,
    },
    /// A lock id was given to end the lock of somebody else.
    LockIdWithForce {
        /// The flag or variable that has it.
        source: &'static str,
    },
    /// The variable for a lock id is empty, or has something else.
    NotALockId { variable: &'static str },
    /// A node is to be fenced without a proof that it is off.
    NoProof,
    /// This node is to be fenced with `--suspect`, without a hook as the proof.
    SuspectNeedsHook(String),
    /// A selector of pods that would match everything.
    EmptyPodSelector,
    /// Neither a pod nor a node; `is_risk` if it looks like a risk to accept.
    NotATarget { typed: String, is_risk: bool },
    /// A kind of object without a name.
    MissingName { kind: String },
    /// Nothing to delete is named.
    NoTargets,
    /// A node and something else are to be deleted.
    NodeNotAlone,
    /// `--pods` was given with several nodes.
    PodsOfMany,
    /// `status --pods` with a namespace.
    PodsOfNamespace,
    /// Not an object that `why` can explain; `node` is its name if it is a Node.
    NotExplained { typed: String, node: Option<String> },
    /// Several objects to explain.
    NotOneObject,
}
