//! The sandbox on a loopback port, for programs outside this process.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::service::SandboxService;

/// A sandbox that serves HTTP/1 and HTTP/2 without TLS on a port, until this is dropped.
#[derive(Debug)]
pub struct Serving {
    /// Its URL, such as `http://127.0.0.1:40123`.
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

/// The connections are in a set, so they end with the task that accepts them.
async fn accept(listener: TcpListener, service: SandboxService) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A client that disconnects before it is accepted must not stop the server.
                if let Ok((stream, _)) = accepted {
                    connections.spawn(connection(stream, service.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, service: SandboxService) {
    // Answers are small and should be sent at once. If this option fails, the socket still works.
    let _ = stream.set_nodelay(true);
    // Errors of the connection are the client's problem.
    let _ = auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
        .await;
}
