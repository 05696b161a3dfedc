//! Answers that get lost, come late, or are not what was hoped for.

mod foreign;
mod overloaded;
mod reads;
mod writes;
