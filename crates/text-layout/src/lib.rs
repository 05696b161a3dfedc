//! Tables as `kubectl get` prints them, and wrapped or cut text, within the width of a terminal.
#![warn(missing_docs)]

mod cut;
pub mod table;
mod wrap;

pub use cut::cut;
pub use wrap::hanging;
