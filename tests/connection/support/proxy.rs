//! Proxies that connect to one fixed address, whatever the client requests, and record the
//! requests.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// A running proxy. It ends with the test process.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    requests: Receiver<String>,
}

impl Proxy {
    /// An HTTP proxy that opens tunnels on CONNECT.
    pub(crate) fn http(target: SocketAddr) -> Self {
        Self::start(target, connect)
    }

    /// A SOCKS5 proxy, which may require a name and password.
    pub(crate) fn socks5(target: SocketAddr, user: Option<(&'static str, &'static str)>) -> Self {
        Self::start(target, move |stream, requests| {
            socks5(stream, user, requests)
        })
    }

    /// An HTTP proxy that refuses all requests.
    pub(crate) fn refusing() -> Self {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::start(nowhere, |mut stream, _| {
            let _ = read_head(&stream);
            let _ = stream.write_all(
                b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n",
            );
            None
        })
    }

    fn start(
        target: SocketAddr,
        greet: impl Fn(TcpStream, &Sender<String>) -> Option<TcpStream> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (sender, requests) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if let Some(client) = greet(stream, &sender) {
                    let server = TcpStream::connect(target).expect("the target is there");
                    pipe(&client, &server);
                    pipe(&server, &client);
                }
            }
        });
        Self { address, requests }
    }

    /// The request of the next client: the head of the HTTP request, or the destination of SOCKS.
    #[track_caller]
    pub(crate) fn request(&self) -> String {
        self.requests.try_recv().expect("a request")
    }

    /// The number of requests that the test has not read.
    pub(crate) fn unseen(&self) -> usize {
        self.requests.try_iter().count()
    }
}

fn connect(mut stream: TcpStream, requests: &Sender<String>) -> Option<TcpStream> {
    let head = read_head(&stream)?;
    let _ = requests.send(head);
    stream
        .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        .ok()?;
    Some(stream)
}

/// Reads only the head, because the bytes after it are for the server.
fn read_head(stream: &TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = BufReader::with_capacity(1, stream);
    while !head.ends_with(b"\r\n\r\n") {
        if byte.read_until(b'\n', &mut head).ok()? == 0 {
            return None;
        }
    }
    String::from_utf8(head).ok()
}

fn socks5(
    mut stream: TcpStream,
    user: Option<(&str, &str)>,
    requests: &Sender<String>,
) -> Option<TcpStream> {
    let [5, methods] = read::<2>(&mut stream)? else {
        return None;
    };
    let mut offered = vec![0; methods.into()];
    stream.read_exact(&mut offered).ok()?;
    if let Some((name, password)) = user {
        stream.write_all(&[5, 2]).ok()?;
        let [1] = read::<1>(&mut stream)? else {
            return None;
        };
        let given = (counted(&mut stream)?, counted(&mut stream)?);
        let right = given == (name.to_owned(), password.to_owned());
        stream.write_all(&[1, u8::from(!right)]).ok()?;
        if !right {
            return None;
        }
    } else {
        stream.write_all(&[5, 0]).ok()?;
    }
    let [5, 1, 0, kind] = read::<4>(&mut stream)? else {
        return None;
    };
    let host = match kind {
        1 => std::net::Ipv4Addr::from(read::<4>(&mut stream)?).to_string(),
        _ => counted(&mut stream)?,
    };
    let port = u16::from_be_bytes(read::<2>(&mut stream)?);
    let _ = requests.send(format!("{host}:{port}"));
    stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).ok()?;
    Some(stream)
}

fn read<const N: usize>(stream: &mut TcpStream) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn counted(stream: &mut TcpStream) -> Option<String> {
    let [length] = read(stream)?;
    let mut bytes = vec![0; length.into()];
    stream.read_exact(&mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}

fn pipe(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (
        from.try_clone().expect("a socket"),
        to.try_clone().expect("a socket"),
    );
    thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
}
