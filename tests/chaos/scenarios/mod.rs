//! Faults that happen to the holder of the node.

mod breaks;
mod clocks;
mod network;
mod outages;
mod processes;
mod storm;
