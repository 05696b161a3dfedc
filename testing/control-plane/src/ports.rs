//! Free ports.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result, bail};

/// Below the range from which the kernel takes ports for outgoing connections: a process that was
/// ended finds its port still free when it is started again.
const RANGE: std::ops::Range<u16> = 20_000..30_000;

/// A loopback port that nobody listens on just now. Somebody may before its user does, so who
/// starts a server on it tries again with another.
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
