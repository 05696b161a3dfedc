//! The messages to a webhook about holds and takeovers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use control_plane::Authority;
use rustls::{ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::support::{Cluster, LEASES, Run, ago, in_memory, on_real, server_config};

const VARIABLE: &str = "KUBECTL_MAINT_WEBHOOK";
const SECRET: &str = "T00000000-B000000-XXXXXXXX";

/// The server's answer to a message.
#[derive(Clone, Copy)]
enum Answer {
    Status(u16),
    /// It closes the connection.
    Nothing,
    /// It keeps the connection open and never answers.
    Silence,
}

/// A webhook server. It gives these answers in order, and repeats the last one. It ends with the test process.
struct Server {
    address: SocketAddr,
    messages: Receiver<(String, Value)>,
}

impl Server {
    fn plain(answers: &'static [Answer]) -> Self {
        Self::start(answers, |stream| Some(Box::new(stream)))
    }

    fn start(
        answers: &'static [Answer],
        accept: impl Fn(TcpStream) -> Option<Box<dyn Stream>> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (sender, messages) = channel();
        let next = Arc::new(Mutex::new(answers.iter().cycle().take(answers.len())));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let Some(stream) = accept(stream) else {
                    continue;
                };
                let (sender, next) = (sender.clone(), Arc::clone(&next));
                let last = *answers.last().expect("an answer");
                thread::spawn(move || {
                    let answer = || *next.lock().expect("a lock").next().unwrap_or(&last);
                    serve(stream, &sender, answer);
                });
            }
        });
        Self { address, messages }
    }

    fn url(&self) -> String {
        format!("http://{}/services/{SECRET}", self.address)
    }

    /// The bodies of the messages received so far. Call it after the plugin has ended.
    fn bodies(&self) -> Vec<Value> {
        let messages = self.messages.try_iter().map(|(head, body)| {
            assert!(
                head.starts_with(&format!("POST /services/{SECRET} HTTP/1.1\r\n")),
                "{head}"
            );
            assert!(
                head.contains("\r\ncontent-type: application/json\r\n"),
                "{head}"
            );
            body
        });
        messages.collect()
    }
}

trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

fn serve(stream: impl Stream, messages: &Sender<(String, Value)>, answer: impl Fn() -> Answer) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length = length
            .and_then(|length| length.parse().ok())
            .expect("a length");
        let mut body = vec![0; length];
        stream.read_exact(&mut body).expect("a body");
        let body = serde_json::from_slice(&body).expect("JSON");
        let _ = messages.send((head, body));
        match answer() {
            Answer::Status(code) => {
                let answer = format!("HTTP/1.1 {code} Said\r\ncontent-length: 0\r\n\r\n");
                if stream.get_mut().write_all(answer.as_bytes()).is_err() {
                    return;
                }
                let _ = stream.get_mut().flush();
            }
            Answer::Nothing => return,
            Answer::Silence => drop(stream.read_to_end(&mut Vec::new())),
        }
    }
}

const OK: &[Answer] = &[Answer::Status(200)];

/// Repeats the run if the machine stalled for longer than the time limit of a message. Returns the last run and its
/// messages.
fn sent(server: &Server, mut run: impl FnMut() -> Run) -> (Run, Vec<Value>) {
    for _ in 0..10 {
        let run = run();
        let bodies = server.bodies();
        if !run.stderr.contains("did not confirm a message") {
            return (run, bodies);
        }
    }
    panic!("no message is ever sent in time");
}

/// The body of a message, without the cluster.
fn without_cluster(mut body: Value) -> Value {
    let body = body.as_object_mut().expect("an object");
    let server = body.remove("server").expect("the server");
    assert!(
        server
            .as_str()
            .is_some_and(|server| server.starts_with("http://127.0.0.1:"))
    );
    assert_eq!(body.remove("context"), Some(json!("sandbox")));
    Value::Object(std::mem::take(body))
}

fn unhold(cluster: &Cluster, nodes: &[&str]) {
    cluster
        .maint([&["unhold", "--yes"], nodes].concat())
        .succeeds();
}

#[test]
fn a_hold_is_one_message_for_all_its_nodes() {
    in_memory("notice-hold", |cluster| {
        let (one, two) = (cluster.node("worker-1"), cluster.node("worker-2"));
        let server = Server::plain(OK);
        let hold = [
            "hold",
            &one,
            &two,
            "-m",
            "bad <DIMM>",
            "--ticket=OPS-7",
            "--expect-until=2030-01-01T00:00:00Z",
        ];
        let (run, bodies) = sent(&server, || {
            cluster.maint(hold).env(VARIABLE, server.url()).succeeds()
        });
        assert!(!run.to_string().contains(SECRET), "{run}");
        let expected = json!({
            "text": format!(
                "{one}, {two}: alice@bastion put the node on hold for maintenance, expected until 2030-01-01 00:00:00 UTC: \
                 \"bad &lt;DIMM&gt;\", ticket OPS-7"
            ),
            "event": "Hold",
            "nodes": [one, two],
            "holder": "alice@bastion",
            "reason": "bad <DIMM>",
            "ticket": "OPS-7",
            "expectedUntil": "2030-01-01T00:00:00Z",
        });
        let bodies: Vec<_> = bodies.into_iter().map(without_cluster).collect();
        assert_eq!(bodies, [expected]);

        // Ending one's own hold, locks and dry runs send no message.
        for quiet in [
            &["hold", &one, "-m", "disk", "--dry-run=server"][..],
            &["unhold", &one, &two],
            &["acquire", &one],
            &["release", &one],
        ] {
            cluster.maint(quiet).env(VARIABLE, server.url()).succeeds();
            assert_eq!(server.bodies(), [Value::Null; 0], "{quiet:?}");
        }
        // Nothing is sent without the variable.
        cluster.maint(hold).env(VARIABLE, "").succeeds();
        assert_eq!(server.bodies(), [Value::Null; 0]);
    });
}

#[test]
fn a_message_names_the_api_user() {
    on_real("notice-user", |cluster| {
        let node = cluster.node("worker-1");
        let server = Server::plain(OK);
        let hold = ["hold", &node, "-m", "disk"];
        let (_, bodies) = sent(&server, || {
            cluster.maint(hold).env(VARIABLE, server.url()).succeeds()
        });
        let who =
            cluster
                .plane()
                .kubectl(&["auth", "whoami", "-o=jsonpath={.status.userInfo.username}"]);
        assert_eq!(bodies[0]["apiUser"], who.expect("a user"));
    });
}

#[test]
fn a_takeover_names_both_holders() {
    in_memory("notice-takeover", |cluster| {
        let node = cluster.node("worker-1");
        let server = Server::plain(OK);
        let expires = || {
            let times = json!({"spec": {"acquireTime": ago(3600), "renewTime": ago(3600), "leaseDurationSeconds": 60}});
            cluster.patch(&format!("{LEASES}/{node}"), &times);
        };
        let events = |body: &Value| body["event"].as_str().unwrap_or_default().to_owned();
        for (before, command, expected) in [
            (
                "hold",
                &["hold", &node, "-m", "fire", "--take-over", "--yes"][..],
                &["Takeover"][..],
            ),
            (
                "acquire",
                &["release", &node, "-m", "fire", "--force", "--yes"],
                &["Takeover"],
            ),
            ("hold", &["unhold", &node, "--yes"], &["Takeover"]),
            ("expired", &["acquire", &node, "-m", "fire"], &["Takeover"]),
            (
                "expired",
                &["with", &node, "-m", "fire", "--", "true"],
                &["Takeover"],
            ),
        ] {
            let (_, bodies) = sent(&server, || {
                cluster
                    .maint([
                        "release",
                        &node,
                        "--force",
                        "--yes",
                        "-m",
                        "test",
                        "--ignore-not-found",
                    ])
                    .run();
                cluster.maint(["unhold", &node, "--yes"]).run();
                let verb = if before == "hold" { "hold" } else { "acquire" };
                cluster
                    .maint([verb, &node, "-m", "disk"])
                    .holder("bob@laptop")
                    .succeeds();
                if before == "expired" {
                    expires();
                }
                cluster
                    .maint(command)
                    .env(VARIABLE, server.url())
                    .succeeds()
            });
            assert_eq!(
                bodies.iter().map(events).collect::<Vec<_>>(),
                expected,
                "{command:?}"
            );
            let body = &bodies[0];
            assert_eq!(body["previousHolder"], "bob@laptop", "{command:?}");
            let holder = body["holder"].as_str().expect("a holder");
            assert!(holder.starts_with("alice@bastion"), "{command:?}: {body}");
            let text = body["text"].as_str().expect("a text");
            assert!(
                text.contains("alice@bastion") && text.contains("bob@laptop"),
                "{text}"
            );
            let reason = &body["reason"];
            assert!(
                command[0] == "unhold" || *reason == "fire",
                "{command:?}: {body}"
            );
        }
    });
}

#[test]
fn a_message_is_retried_until_it_is_accepted() {
    in_memory("notice-retry", |cluster| {
        let node = cluster.node("worker-1");
        let hold = ["hold", &node, "-m", "disk"];
        // If the machine stalls, there is not enough time for three attempts, so this is repeated.
        let tried = (0..10).find_map(|_| {
            let server =
                Server::plain(&[Answer::Nothing, Answer::Status(500), Answer::Status(204)]);
            let run = cluster.maint(hold).env(VARIABLE, server.url()).succeeds();
            unhold(cluster, &[&node]);
            (!run.stderr.contains("did not confirm")).then(|| server.bodies())
        });
        let tried = tried.expect("it is taken");
        assert_eq!(tried.len(), 3);
        assert!(tried.iter().all(|body| *body == tried[0]), "{tried:?}");

        // A refusal is final.
        let server = Server::plain(&[Answer::Status(404)]);
        let run = cluster.maint(hold).env(VARIABLE, server.url()).succeeds();
        let said = format!(
            "Warning: the webhook at {} did not confirm a message: it answered with HTTP status 404\n",
            server.address
        );
        assert!(run.stderr.contains(&said), "{run}");
        assert_eq!(server.bodies().len(), 1);
    });
}

#[test]
fn a_webhook_that_does_not_work_fails_nothing_and_its_url_stays_secret() {
    in_memory("notice-down", |cluster| {
        let node = cluster.node("worker-1");
        let closed = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let closed = closed.expect("a free port");
        let silent = Server::plain(&[Answer::Silence]);
        let closing = Server::plain(&[Answer::Nothing]);
        let authority = Authority::new("test").expect("an authority");
        let secure = secure(&authority);
        for (url, said) in [
            (
                silent.url(),
                format!(
                    "at {} did not confirm a message: it did not answer in 2s",
                    silent.address
                ),
            ),
            (
                closing.url(),
                format!(
                    "at {} did not confirm a message: the server closed the connection before it answered",
                    closing.address
                ),
            ),
            (
                format!("http://{closed}/{SECRET}"),
                format!(
                    "at {closed} did not confirm a message: The connection to the server {closed} was refused"
                ),
            ),
            (
                secure.url().replace("http:", "https:"),
                format!("at {} did not confirm a message: ", secure.address),
            ),
            (
                format!("ftp://example.com/{SECRET}"),
                format!("in {VARIABLE}: it is not an http or https URL"),
            ),
            (
                format!("http://127.0.0.1:99999/{SECRET}"),
                format!("in {VARIABLE}: it is not an http or https URL"),
            ),
            (
                format!("{SECRET} and more"),
                format!("in {VARIABLE}: it is not an http or https URL"),
            ),
        ] {
            let run = cluster
                .maint(["hold", &node, "-m", "disk", "-v9"])
                .env(VARIABLE, url)
                .succeeds();
            let warnings = run.stderr.lines().filter(|line| line.contains("webhook"));
            let warnings: Vec<&str> = warnings.collect();
            assert_eq!(warnings.len(), 1, "{run}");
            assert!(warnings[0].contains(&said), "{said}: {run}");
            assert!(
                !format!("{}{}", run.stdout, run.stderr).contains(SECRET),
                "{run}"
            );
            unhold(cluster, &[&node]);
        }
    });
}

/// A webhook server with TLS.
fn secure(authority: &Authority) -> Server {
    let identity = authority.server(&["127.0.0.1"]).expect("a certificate");
    let config = server_config(&identity, &[]);
    Server::start(OK, move |mut stream| {
        let mut connection = ServerConnection::new(Arc::clone(&config)).expect("a configuration");
        while connection.is_handshaking() {
            connection.complete_io(&mut stream).ok()?;
        }
        Some(Box::new(StreamOwned::new(connection, stream)))
    })
}

#[test]
fn system_authorities_are_trusted() {
    in_memory("notice-tls", |cluster| {
        let node = cluster.node("worker-1");
        let authority = Authority::new("test").expect("an authority");
        let server = secure(&authority);
        let url = server.url().replace("http://", "https://");
        let trusted = cluster.directory().join("webhook-ca.crt");
        std::fs::write(&trusted, authority.pem()).expect("a file");
        let hold = ["hold", &node, "-m", "disk"];
        let (_, bodies) = sent(&server, || {
            let hold = cluster
                .maint(hold)
                .env(VARIABLE, &url)
                .env("SSL_CERT_FILE", &trusted);
            hold.succeeds()
        });
        assert_eq!(bodies.len(), 1);
        let run = cluster.maint(hold).env(VARIABLE, &url).succeeds();
        assert!(
            run.stderr
                .contains("certificate signed by unknown authority"),
            "{run}"
        );
        assert_eq!(server.bodies().len(), 0);
    });
}

#[test]
fn doctor_reports_overdue_holds() {
    in_memory("notice-overdue", |cluster| {
        let (late, early) = (cluster.node("worker-1"), cluster.node("worker-2"));
        let hold = ["hold", &late, &early, "-m", "disk", "--expect-until=2h"];
        cluster.maint(hold).holder("bob@laptop").succeeds();
        let server = Server::plain(OK);
        let doctor = || {
            let (run, bodies) = sent(&server, || {
                cluster.maint(["doctor"]).env(VARIABLE, server.url()).run()
            });
            let words: Vec<&str> = run.stdout.split_whitespace().collect();
            (words.join(" "), bodies)
        };
        let (found, bodies) = doctor();
        assert!(!found.contains("overdue") && bodies.is_empty(), "{found}");

        let past = chrono::Utc::now() - chrono::TimeDelta::minutes(185);
        let past = past.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        let overdue = json!({"metadata": {"annotations": {"kubectl-maint.dev/hold-until": past}}});
        cluster.patch(&format!("{LEASES}/{late}"), &overdue);
        let (found, bodies) = doctor();
        let said =
            format!("note leases holds past their expected end: {late} (bob@laptop, overdue by 3h");
        assert!(found.contains(&said), "{found}");
        assert!(
            found.contains("if the work is done: `kubectl maint unhold NODE`"),
            "{found}"
        );
        assert_eq!(bodies.len(), 1, "{bodies:?}");
        let body = without_cluster(bodies[0].clone());
        let text = body["text"].as_str().expect("a text");
        let begins = format!("{late}: the maintenance hold of bob@laptop is overdue by 3h");
        assert!(
            text.starts_with(&begins) && text.ends_with(": \"disk\""),
            "{text}"
        );
        assert_eq!(
            (
                &body["event"],
                &body["nodes"],
                &body["holder"],
                &body["expectedUntil"]
            ),
            (
                &json!("Overdue"),
                &json!([late]),
                &json!("bob@laptop"),
                &json!(past)
            ),
        );
    });
}

#[test]
fn an_invalid_address_is_reported() {
    in_memory("webhook-unusable", |cluster| {
        let node = cluster.node("worker-1");
        let hold = cluster.maint(["hold", &node, "-m", "disk"]);
        let run = hold.env(VARIABLE, "hooks.example.com/T0").succeeds();
        let said = format!("Warning: could not use the webhook in {VARIABLE}: ");
        assert!(run.stderr.contains(&said), "{run}");
    });
}
