//! The sandbox on a loopback port, for programs that are not in this process.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::service::SandboxService;

/// A sandbox that answers plain HTTP/1 and HTTP/2 on a port, until this is dropped.
#[derive(Debug)]
pub struct Serving {
    /// Its address, such as `http://127.0.0.1:40123`.
    pub url: String,
    accepting: JoinHandle<Infallible>,
}

impl Serving {
    pub(crate) fn start(listener: TcpListener, service: SandboxService) -> io::Result<Self> {
        let address: SocketAddr = listener.local_addr()?;
        Ok(Self {
            url: format!("http://{address}"),
            accepting: tokio::spawn(accept(listener, service)),
        })
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Connections live in the set, so that they end with the task that accepts them.
async fn accept(listener: TcpListener, service: SandboxService) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A peer that is gone before it was accepted is no concern of the others.
                if let Ok((stream, _)) = accepted {
                    connections.spawn(connection(stream, service.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, service: SandboxService) {
    // Answers are small, and their reader is waiting; a socket that refuses this still works.
    let _ = stream.set_nodelay(true);
    // A connection that breaks is the client's to notice.
    let _ = auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
        .await;
}
