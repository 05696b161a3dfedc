//! The only code of this library that talks to the API server.

pub mod aftermath;
mod events;
mod gather;
pub mod pods;
pub mod reader;
mod rights;
mod stranded;

pub use aftermath::Aftermath;
pub use pods::{Deletion, Exactly};
pub use reader::Reader;
