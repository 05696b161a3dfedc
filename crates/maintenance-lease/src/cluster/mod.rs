//! The only code that talks to the API server: reads, compare-and-swap, server time, events, and
//! the server's errors in kubectl's words.

mod anywhere;
pub(crate) mod api;
pub(crate) mod change;
pub(crate) mod error;
pub(crate) mod events;
mod imagine;
mod items;
pub(crate) mod nodes;
mod open_writes;
mod origin;
pub(crate) mod patch;
pub(crate) mod reads;
pub(crate) mod requests;
pub(crate) mod server_time;
pub(crate) mod watch;
pub(crate) mod wire;
pub(crate) mod writes;
