//! What nobody should give the plugin, and somebody will: each with what it says then.

mod durations;
mod environment;
mod nodes;
mod pipes;
mod server;
mod text;
mod usage;
