//! The message names a server that can't be reached, whether the command sends one request or several at the same time.

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::support::maint::Maint;

/// Verbs with their arguments. All except `version` and `release` send two requests at the same time, and the second
/// one waits for the connection of the first. `status` fails as a whole, the others fail node by node.
const VERBS: [&[&str]; 8] = [
    &["version"],
    &["release", "worker-1"],
    &["status"],
    &["status", "worker-1"],
    &["status", "-w"],
    &["acquire", "worker-1"],
    &["acquire", "worker-1", "worker-2"],
    &["hold", "worker-1", "-m", "new disk"],
];

/// Runs every verb against a server, and expects this first line on stderr.
#[track_caller]
fn all_fail_at(server: &str, expected: &str) {
    for verb in VERBS {
        Maint::verb(verb[0])
            .args(&verb[1..])
            .args(["--server", server])
            .fails(expected);
    }
}

/// An address at which connections are refused while this exists. It is the client's end of a connection: that does not
/// accept connections, and no other process gets its port.
struct Refusing {
    client: TcpStream,
    _listener: TcpListener,
}

impl Refusing {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let server = listener.local_addr().expect("it is bound");
        let client = TcpStream::connect(server).expect("somebody listens");
        Self {
            client,
            _listener: listener,
        }
    }

    fn address(&self) -> SocketAddr {
        self.client.local_addr().expect("it is connected")
    }
}

/// Nothing listens at this address, with TLS or without.
#[test]
fn refused_connections_name_the_server() {
    let refusing = Refusing::new();
    let address = refusing.address();
    let expected = format!(
        "The connection to the server {address} was refused - did you specify the right host or port?"
    );
    for server in [
        format!("https://{address}"),
        format!("http://{address}"),
        format!("https://{address}/k8s/clusters/c-1"),
        address.to_string(),
    ] {
        all_fail_at(&server, &expected);
    }
}

/// No host has this name, with TLS or without.
#[test]
fn unknown_hosts_are_named() {
    let lookup = ("nowhere.invalid", 443)
        .to_socket_addrs()
        .expect_err("the name is reserved for nobody");
    // If no name server can be reached, it is unknown whether the host exists.
    let expected = if lookup.to_string().contains("Temporary failure") {
        "Unable to connect to the server: dial tcp nowhere.invalid: lookup: temporary failure in name resolution"
    } else {
        "Unable to connect to the server: dial tcp: lookup nowhere.invalid: no such host"
    };
    for server in ["https://nowhere.invalid", "http://nowhere.invalid:6443"] {
        all_fail_at(server, expected);
    }
}

/// Without any configuration, localhost is used, and the hint says what is missing.
#[test]
fn missing_configuration_is_hinted_at() {
    assert!(
        TcpStream::connect("localhost:8080").is_err(),
        "this test needs localhost:8080, kubectl's last resort, to be free"
    );
    for verb in VERBS {
        let run = Maint::verb(verb[0])
            .args(&verb[1..])
            .variable("KUBECONFIG", "/nowhere/config")
            .variable("HOME", "/nowhere")
            .fails(
                "The connection to the server localhost:8080 was refused - did you specify the right host or port?",
            );
        assert_eq!(
            run.stderr.lines().nth(1),
            Some(
                "hint: no API server is configured: check that the files in KUBECONFIG exist, or use --kubeconfig or --context"
            ),
            "{run:?}"
        );
    }
}

/// A slow name look-up delays neither the time limit of the request nor the end of the command.
#[test]
fn slow_name_lookup_ends_with_the_request() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let aliases = directory.path().join("aliases");
    let opened = directory.path().join("opened");
    // The look-up blocks while it opens the FIFO. A writer appears after 60 s, to make the test fail instead of hang.
    let mut writer = Command::new("/bin/sh")
        .args([
            "-c",
            r#"mkfifo "$0"; echo ready; sleep 60; : >"$1"; while echo >"$0"; do :; done"#,
        ])
        .args([&aliases, &opened])
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("a shell");
    let mut ready = [0; 6];
    let stdout = writer.stdout.as_mut().expect("a pipe");
    stdout.read_exact(&mut ready).expect("it is made");
    let run = Maint::version()
        .args(["--server", "https://nowhere", "--request-timeout", "1s"])
        .variable("HOSTALIASES", &aliases)
        .run();
    kill_process_group(Pid::from_child(&writer), Signal::KILL).expect("it is ours");
    writer.wait().expect("it was killed");
    let expected = "Unable to connect to the server: net/http: request canceled (Client.Timeout exceeded while awaiting headers)\n";
    assert!(run.stderr.starts_with(expected), "{run:?}");
    assert_eq!(run.code, 1, "{run:?}");
    assert!(!opened.exists(), "{run:?}");
}
