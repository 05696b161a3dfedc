//! Input that cannot be meant.
