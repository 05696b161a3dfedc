//! The status paths for probes and Prometheus.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use rustix::process::Signal;

use crate::support::candidate::Candidate;
use crate::support::cluster::Cluster;
use crate::support::{eventually, tests_on_both};

tests_on_both! {
    leader_and_standby_answer_the_status_paths,
    a_standby_that_is_cut_off_is_alive_and_not_ready,
    a_process_that_still_connects_is_alive_and_ends_on_term,
}

const SERVING: &[&str] = &["--status-address=127.0.0.1:0", "--lease-duration=1h"];

fn leader_and_standby_answer_the_status_paths(cluster: &Cluster) {
    let mut a = cluster.candidate("a").with(SERVING).start();
    cluster.journal.wait_for("begin a");
    let b = cluster.candidate("b").with(SERVING).start();
    // The name of its Lease contains "leads", so the test waits for another text.
    b.says("standing by: ");
    assert_eq!((get(&a, "/healthz").0, get(&b, "/healthz").0), (200, 200));
    assert_eq!((get(&a, "/readyz").0, get(&b, "/readyz").0), (200, 200));
    assert_eq!(
        (get(&a, "/readyz?leader").0, get(&b, "/readyz?leader").0),
        (200, 503)
    );
    let labels = format!("{{namespace=\"default\",lease=\"{}\"}}", cluster.lease);
    for (candidate, leads) in [(&a, 1), (&b, 0)] {
        let (code, page) = get(candidate, "/metrics");
        assert_eq!(code, 200);
        assert!(
            page.contains("\r\ncontent-type: text/plain; version=0.0.4"),
            "{page}"
        );
        let line = format!("\nlease_elect_leader{labels} {leads}\n");
        assert!(page.contains(&line), "{page}");
    }
    a.signal(Signal::TERM);
    assert_eq!(a.code(), Some(0));
    eventually("another leader", || {
        (get(&b, "/readyz?leader").0 == 200).then_some(())
    });
    cluster.journal.wait_for("begin b");
}

fn a_standby_that_is_cut_off_is_alive_and_not_ready(cluster: &Cluster) {
    let a = cluster
        .candidate("a")
        .with(&["--lease-duration=1h"])
        .start();
    cluster.journal.wait_for("begin a");
    let wire = cluster.wire();
    let b = cluster.candidate_on(&wire, "b").with(SERVING).start();
    b.says("leads");
    assert_eq!(get(&b, "/readyz").0, 200);
    wire.break_off();
    b.says("can't be watched");
    assert_eq!((get(&b, "/healthz").0, get(&b, "/readyz").0), (200, 503));
    drop(a);
}

fn a_process_that_still_connects_is_alive_and_ends_on_term(cluster: &Cluster) {
    let path = cluster.kubeconfig_with_slow_plugin();
    let flag = format!("--kubeconfig={}", path.display());
    for (signal, code) in [(Signal::TERM, 0), (Signal::INT, 130)] {
        let setup = cluster.candidate("a").with(SERVING).with(&[&flag]);
        let mut a = setup.run(&["true"]);
        assert_eq!((get(&a, "/healthz").0, get(&a, "/readyz").0), (200, 503));
        assert_eq!(get(&a, "/metrics").0, 503);
        a.says("waiting for credential plugin /bin/sh");
        a.signal(signal);
        assert_eq!(a.code(), Some(code));
        a.says("asked to end");
    }
    let lines = cluster.journal.lines();
    let numbers: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("plugin "))
        .flat_map(str::split_whitespace)
        .collect();
    assert_eq!(numbers.len(), 4, "{lines:?}");
    for number in numbers {
        eventually("the end of the plugin", || has_ended(number).then_some(()));
    }
}

/// Whether a process is gone, or is a zombie.
fn has_ended(number: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| &rest[..1]);
    matches!(state, None | Some("Z" | "X"))
}

/// Sends a request to a candidate. Returns the status code and the whole response.
fn get(candidate: &Candidate, target: &str) -> (u16, String) {
    let said = candidate.says("status on http://");
    let (_, address) = said.split_once("http://").expect("an address");
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(
        stream,
        "GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let code = answer.split(' ').nth(1).expect("a code");
    (code.parse().expect("a number"), answer)
}
