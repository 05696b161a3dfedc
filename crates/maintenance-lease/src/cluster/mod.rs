//! The only code that talks to the API server: reads, compare-and-swap, server time, events, and
//! the server's errors in kubectl's words.

pub(crate) mod api;
pub(crate) mod call;
pub(crate) mod change;
mod dry_run;
pub(crate) mod error;
pub(crate) mod events;
mod items;
pub(crate) mod lists;
pub(crate) mod nodes;
mod open_writes;
mod paging;
pub(crate) mod patch;
pub(crate) mod reads;
pub(crate) mod requests;
mod response_check;
mod retry;
pub(crate) mod server_time;
pub(crate) mod waiters;
pub(crate) mod watch;
pub(crate) mod wire;
pub(crate) mod writes;
