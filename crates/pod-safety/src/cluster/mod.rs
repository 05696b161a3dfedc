//! The only code of this library that talks to the API server.

pub mod deletion;
pub mod fencing;
mod gather;
mod nodes;
mod objects;
mod owners;
mod pods;
pub mod reader;
mod remains;
mod rights;
mod stuck;
mod whole_nodes;
mod why;

pub use deletion::{Deletion, DeletionRequest};
pub use fencing::Evidence;
pub use reader::Reader;
