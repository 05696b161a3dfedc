//! What the end of a lock leaves on other objects than its Node.

use crate::machine_record::MachineRecord;
use crate::write_error::WriteError;

/// What the end of a lock leaves on other objects than the Node, and why.
#[derive(Debug)]
pub enum LeftBehind {
    /// The record of the Machine can't be read. It is removed, and the opt-outs may stay.
    UnreadableRecord,
    /// The Machine is that of another node, or of none. Nothing was removed from it.
    OnMachineOfAnother(WriteError),
    /// Opt-outs.
    OnMachine {
        /// The Machine.
        record: MachineRecord,
        /// Why they stay.
        error: WriteError,
    },
    /// The medik8s Lease.
    Medik8sLease(WriteError),
}
