//! Input that is wrong or extreme, and the message for each.

mod durations;
mod environment;
mod nodes;
mod pipes;
mod server;
mod text;
mod usage;
