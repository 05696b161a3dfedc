//! A network between one contender and the API server: a TCP proxy that reads nothing of what it
//! carries, and can hold it back, either way or both, or slow it down.

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

/// What becomes of the bytes of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Pass,
    /// They take so long.
    Slow(Duration),
    /// They are delayed, and arrive once the link is back, as in a network that was cut: nobody gets an
    /// error, and what was sent is sent again later.
    Hold,
    /// They stay on the way, and the connection breaks: what went the other way has arrived.
    Break,
}

/// Ends with its connections when it is dropped.
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

    /// What becomes of requests from now on; those that are on the way are treated alike.
    pub(crate) fn requests(&self, flow: Flow) {
        self.requests.send_replace(flow);
    }

    /// What becomes of answers, and of watch events.
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

/// An administrator's kubeconfig for what listens at `address`.
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
        // A client that left before it was accepted is no concern of the others.
        if let Ok((client, _)) = listener.accept().await {
            tokio::spawn(connect(client, server, flows.clone()));
        }
    }
}

/// Carries one connection until either end or a broken link ends it.
async fn connect(client: TcpStream, server: SocketAddr, (requests, answers): Flows) {
    // Refused: the client's connection is closed as well, by dropping it.
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

/// Carries one direction. A bare end of it is carried too: what was held back arrives before it.
async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut flow: watch::Receiver<Flow>,
) -> io::Result<()> {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let count = from.read(&mut bytes).await?;
        // A link that is gone for good carries nothing.
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
