//! The only code of this library that talks to the API server.

pub mod aftermath;
pub mod deletion;
pub mod fencing;
mod gather;
mod nodes;
mod pods;
pub mod reader;
mod remains;
mod rights;
mod stranded;
mod why;

pub use aftermath::{Aftermath, Following, Kin, Removed, Replacement};
pub use deletion::{Deletion, Exactly};
pub use fencing::Evidence;
pub use reader::Reader;
