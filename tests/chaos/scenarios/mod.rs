//! What is done to whoever has the node.

mod breaks;
mod clocks;
mod network;
mod outages;
mod processes;
mod storm;
