//! The only code of this library that talks to the API server.

pub mod reader;

pub use reader::Reader;
