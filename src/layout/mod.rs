//! Tables as `kubectl get` prints them, and wrapped or cut text, within the width of a terminal.

pub(crate) mod cut;
pub(crate) mod table;
pub(crate) mod wrap;
