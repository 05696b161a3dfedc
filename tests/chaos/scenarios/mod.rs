//! Faults that happen to the holder of the node.

mod clocks;
mod network;
mod outages;
mod processes;
mod random_faults;
mod takeovers;
