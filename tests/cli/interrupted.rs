//! Ctrl-C while writes are under way.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::{Cluster, holder_of, in_memory};

#[test]
fn what_was_taken_is_given_back_and_what_may_still_land_is_said() {
    in_memory("interrupt-many", |cluster| {
        let nodes = ["worker-1", "worker-2", "worker-3"].map(|node| cluster.node(node));
        for node in &nodes {
            cluster.lease(node, &json!({}));
        }
        let way = Way::that_loses(cluster, &format!("/leases/{}?", nodes[2]));
        let acquire = way.start(cluster, &["acquire", &nodes[0], &nodes[1], &nodes[2]]);
        way.is_stuck();
        let (stderr, code) = interrupt(acquire);
        assert_eq!(code, 130, "{stderr}");
        let open = format!("the write for node/{} was under way", nodes[2]);
        assert!(stderr.contains(&open), "{stderr}");
        assert!(
            stderr.contains(&format!("status {}", nodes[2])),
            "how to see: {stderr}"
        );
        assert!(
            stderr.ends_with("none of the 3 nodes was acquired\n"),
            "{stderr}"
        );
        for node in &nodes {
            assert_eq!(holder_of(cluster, node), None, "{node}: {stderr}");
        }
    });
}

#[test]
fn a_release_says_that_it_may_still_take_effect() {
    in_memory("interrupt-release", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster.maint(["acquire", &node]).succeeds();
        let way = Way::that_loses(cluster, &format!("/leases/{node}?"));
        let release = way.start(cluster, &["release", &node]);
        way.is_stuck();
        let (stderr, code) = interrupt(release);
        assert_eq!(code, 130, "{stderr}");
        assert!(stderr.contains("may still take effect"), "{stderr}");
    });
}

/// Presses Ctrl-C and waits for the end: what it says, and its code.
fn interrupt(child: Child) -> (String, i32) {
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    (stderr, output.status.code().expect("it ends by itself"))
}

/// The way to the API server, on which some writes are lost.
struct Way {
    url: String,
    stuck: Receiver<()>,
}

impl Way {
    /// Hands all requests on but a PATCH whose line contains `lost`.
    fn that_loses(cluster: &Cluster, lost: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (tell, stuck) = channel();
        let (server, lost) = (cluster.address(), lost.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (server, lost, tell) = (server.clone(), lost.clone(), tell.clone());
                thread::spawn(move || hand_on(client, &server, &lost, &tell));
            }
        });
        Self {
            url: format!("http://{address}"),
            stuck,
        }
    }

    fn start(&self, cluster: &Cluster, arguments: &[&str]) -> Child {
        cluster
            .maint(["-s", &self.url])
            .args(arguments)
            .command()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the plugin was built")
    }

    /// Returns once a write was lost.
    fn is_stuck(&self) {
        self.stuck.recv().expect("the write comes");
    }
}

/// Copies between a client and the server until one of them goes, or a request is to be lost.
fn hand_on(mut client: TcpStream, server: &str, lost: &str, tell: &Sender<()>) {
    let mut server = TcpStream::connect(server).expect("the server listens");
    let mut answers = server.try_clone().expect("a socket");
    let mut back = client.try_clone().expect("a socket");
    thread::spawn(move || std::io::copy(&mut answers, &mut back));
    let mut buffer = [0; 64 << 10];
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        let line = String::from_utf8_lossy(&buffer[..length]);
        let line = line.lines().next().unwrap_or_default();
        if line.starts_with("PATCH ") && line.contains(lost) {
            // The test may be over by then.
            let _ = tell.send(());
            // Not a word more on this connection, which stays open.
            let _ = client.read_to_end(&mut Vec::new());
            return;
        }
        if server.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
}
