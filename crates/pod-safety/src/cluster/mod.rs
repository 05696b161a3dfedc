//! The only code of this library that talks to the API server.

pub mod aftermath;
mod events;
pub mod fencing;
mod gather;
pub mod pods;
pub mod reader;
mod rights;
mod stranded;

pub use aftermath::{Aftermath, Kin, Replacement, Taken};
pub use fencing::Evidence;
pub use pods::{Deletion, Exactly};
pub use reader::Reader;
