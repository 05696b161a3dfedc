//! A TCP proxy between one contender and the API server. It does not read the data, and can delay or hold it in one
//! direction or both.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use control_plane::{ControlPlane, Kubeconfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::RUNTIME;

/// What happens to the bytes of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Pass,
    /// They are delayed by this time.
    Slow(Duration),
    /// They are held until the flow changes, as in a network that was cut. Neither side gets an error, and all bytes
    /// arrive later.
    Hold,
    /// They are dropped, and the connection breaks. Bytes of the other direction have arrived.
    Break,
}

/// A running proxy. It ends, with its connections, when it is dropped.
pub(crate) struct TcpProxy {
    pub(crate) kubeconfig: PathBuf,
    requests: watch::Sender<Flow>,
    answers: watch::Sender<Flow>,
    accepting: JoinHandle<Infallible>,
}

impl TcpProxy {
    pub(crate) fn new(plane: &ControlPlane, directory: &Path) -> Self {
        let server = plane.url().strip_prefix("https://").expect("TLS");
        let server: SocketAddr = server.parse().expect("an address");
        let listener = RUNTIME
            .block_on(TcpListener::bind("127.0.0.1:0"))
            .expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let kubeconfig = kubeconfig(plane, directory, address);
        let (requests, answers) = (
            watch::Sender::new(Flow::Pass),
            watch::Sender::new(Flow::Pass),
        );
        let flows = (requests.subscribe(), answers.subscribe());
        Self {
            kubeconfig,
            requests,
            answers,
            accepting: RUNTIME.spawn(accept(listener, server, flows)),
        }
    }

    /// Sets the flow of requests, also of those in progress.
    pub(crate) fn requests(&self, flow: Flow) {
        self.requests.send_replace(flow);
    }

    /// Sets the flow of answers, including watch events.
    pub(crate) fn answers(&self, flow: Flow) {
        self.answers.send_replace(flow);
    }

    pub(crate) fn both(&self, flow: Flow) {
        self.requests(flow);
        self.answers(flow);
    }
}

impl Drop for TcpProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// An administrator's kubeconfig for a server at `address`.
pub(super) fn kubeconfig(plane: &ControlPlane, directory: &Path, address: SocketAddr) -> PathBuf {
    let path = directory.join(format!("{}.kubeconfig", address.port()));
    Kubeconfig {
        server: &format!("https://{address}"),
        ca_pem: &plane.authority().pem(),
        user: "admin",
        identity: plane.admin(),
    }
    .write(&path)
    .expect("a kubeconfig");
    path
}

type Flows = (watch::Receiver<Flow>, watch::Receiver<Flow>);

async fn accept(listener: TcpListener, server: SocketAddr, flows: Flows) -> Infallible {
    loop {
        // A client that disconnects before it is accepted must not stop the proxy.
        if let Ok((client, _)) = listener.accept().await {
            tokio::spawn(connect(client, server, flows.clone()));
        }
    }
}

/// Forwards one connection until either side closes it or the link breaks it.
async fn connect(client: TcpStream, server: SocketAddr, (requests, answers): Flows) {
    // If the server refuses the connection, the client's connection is dropped and so closed.
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let _either_end = tokio::try_join!(
        carry(from_client, to_server, requests),
        carry(from_server, to_client, answers),
    );
}

/// Forwards one direction. The end of the stream is forwarded too, after the bytes that were held.
async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut flow: watch::Receiver<Flow>,
) -> io::Result<()> {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let count = from.read(&mut bytes).await?;
        // An error means that the proxy was dropped.
        let may_pass = flow.wait_for(|flow| *flow != Flow::Hold).await;
        let now = *may_pass.map_err(io::Error::other)?;
        match now {
            Flow::Break => return Err(io::ErrorKind::ConnectionAborted.into()),
            Flow::Slow(length) => tokio::time::sleep(length).await,
            Flow::Pass | Flow::Hold => {}
        }
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&bytes[..count]).await?;
    }
}
