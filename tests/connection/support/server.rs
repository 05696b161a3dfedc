//! An API server that only answers with its version, or not at all. It has certificates, answers and timeouts that the
//! real one does not have.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use control_plane::Identity;
use rustls::{ServerConnection, StreamOwned};

use super::tls::server_config;

const VERSION: &str = r#"{"major":"1","minor":"36","gitVersion":"v1.36.3","gitCommit":"","gitTreeState":"","buildDate":"","goVersion":"","compiler":"","platform":""}"#;

/// A server that answers every request with its version. It ends with the test process.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Receiver<String>,
}

impl Server {
    /// A server without TLS. Answers have these headers, one per line.
    pub(crate) fn plain(headers: &'static str) -> Self {
        Self::start(move |stream, requests| serve(stream, headers, requests))
    }

    /// A server with TLS and this certificate, over HTTP/1.1. It ignores clients that reject the certificate.
    pub(crate) fn tls(identity: &Identity) -> Self {
        let config = server_config(identity, &[]);
        Self::start(move |stream, requests| {
            let connection =
                ServerConnection::new(Arc::clone(&config)).expect("the configuration is complete");
            serve(StreamOwned::new(connection, stream), "", requests);
        })
    }

    /// A server with TLS that records the protocol negotiated with each client as a request, and closes the connection.
    pub(crate) fn negotiating(identity: &Identity) -> Self {
        let config = server_config(identity, &["h2", "http/1.1"]);
        Self::start(move |mut stream, requests| {
            let mut connection =
                ServerConnection::new(Arc::clone(&config)).expect("the configuration is complete");
            while connection.is_handshaking() && connection.complete_io(&mut stream).is_ok() {}
            let agreed = connection.alpn_protocol().unwrap_or_default();
            let _ = requests.send(String::from_utf8_lossy(agreed).into_owned());
        })
    }

    /// A server that accepts connections and never answers.
    pub(crate) fn silent() -> Self {
        Self::start(|mut stream, _| {
            let _ = stream.read_to_end(&mut Vec::new());
        })
    }

    /// A server that gives this answer to the first request of each connection, and closes the connection.
    pub(crate) fn hanging_up(answer: String) -> Self {
        Self::start(move |stream, requests| {
            let mut stream = BufReader::new(stream);
            if let Some(head) = head(&mut stream) {
                let _ = requests.send(head);
                let _ = stream.get_mut().write_all(answer.as_bytes());
            }
        })
    }

    fn start(handle: impl Fn(TcpStream, &Sender<String>) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (sender, requests) = channel();
        let handle = Arc::new(handle);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (handle, sender) = (Arc::clone(&handle), sender.clone());
                thread::spawn(move || handle(stream, &sender));
            }
        });
        Self { address, requests }
    }

    /// The head of the next request: its request line and headers. Call it after the plugin has ended.
    #[track_caller]
    pub(crate) fn request(&self) -> String {
        self.requests.try_recv().expect("a request came in")
    }

    /// The number of requests that the test has not read.
    pub(crate) fn unseen(&self) -> usize {
        self.requests.try_iter().count()
    }
}

fn serve(stream: impl Read + Write, headers: &str, requests: &Sender<String>) {
    let mut stream = BufReader::new(stream);
    loop {
        let Some(head) = head(&mut stream) else {
            return;
        };
        let _ = requests.send(head);
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{VERSION}",
            VERSION.len()
        );
        if stream
            .get_mut()
            .write_all(answer.as_bytes())
            .and_then(|()| stream.get_mut().flush())
            .is_err()
        {
            return;
        }
    }
}

/// The request line and headers of the next request. `None` if the client has closed the connection.
fn head(stream: &mut impl BufRead) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if !matches!(stream.read_line(&mut head), Ok(1..)) {
            return None;
        }
    }
    Some(head)
}
