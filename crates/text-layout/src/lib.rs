//! Tables as `kubectl get` prints them, and wrapped text, within the width of a terminal.
#![warn(missing_docs)]

pub mod table;
mod wrap;

pub use wrap::hanging;
