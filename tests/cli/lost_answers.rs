//! Answers that are lost, late, or not from the API server.

mod foreign;
mod overloaded;
mod reads;
mod writes;
