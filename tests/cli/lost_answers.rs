//! Answers that get lost, come late, or are not what was hoped for.

mod overloaded;
mod writes;
