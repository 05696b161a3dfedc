//! Free ports.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result, bail};

/// Below the range of ports for outgoing connections, so a process that is restarted finds its port
/// free.
const RANGE: std::ops::Range<u16> = 20_000..30_000;

/// A loopback port that no process listens on now. Another process may take it first, so callers
/// that start a server on it must retry with another port.
pub(crate) fn free_port() -> Result<u16> {
    for _ in 0..1000 {
        let port = fastrand::u16(RANGE);
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(port),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            Err(error) => return Err(error).context("failed to look for a free port"),
        }
    }
    bail!("no free port between {} and {}", RANGE.start, RANGE.end)
}
