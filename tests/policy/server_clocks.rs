//! API servers whose clocks differ by one second. A client reads the time from one of them, and writes to the other.

use chrono::{DateTime, TimeDelta, Utc};
use control_plane::NodeSpec;
use serde_json::{Value, json};

use crate::support::{
    ADMINISTRATORS, Dates, HOLDERS, LEASES, Person, TOUR, USERS, about, admitted, at, denying,
    person, refused_by, wait_until,
};

/// The Date of the answers: from the right server, from one that is behind or ahead, and from two of them behind a load
/// balancer.
const SERVERS: [Dates; 5] = [
    Dates::All(0),
    Dates::All(-1),
    Dates::All(1),
    Dates::EverySecond(-1),
    Dates::EverySecond(1),
];

#[test]
fn no_verb_is_refused_if_the_servers_are_a_second_apart() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("server-clocks");
    let hugo = person(plane, "clocks-hugo", &[USERS, HOLDERS]);
    let ada = person(plane, "clocks-ada", &[HOLDERS, ADMINISTRATORS]);
    let ugo = person(plane, "clocks-ugo", &[USERS]);
    for number in [0, 3] {
        let node = format!("server-clocks-{number}");
        let created = plane.create_nodes(&[NodeSpec::ready(&node)]);
        created.expect("a node");
        // Each command reads the time from another server than the previous one.
        let mut servers = SERVERS.into_iter().cycle().skip(number);
        let mut each = |by: &Person, line: &str| {
            let server = servers.next().expect("there is no end");
            by.succeeds_at(plane, server, &about(line, &node));
        };
        for line in TOUR {
            each(&hugo, line);
        }
        for lock in ["acquire NODE --opt-outs=none", "hold NODE -m disk"] {
            each(&hugo, lock);
            each(&ada, "hold NODE -m fire --take-over --yes");
            each(&ada, "unhold NODE");
        }
        // A lock of somebody else expires.
        each(&hugo, "acquire NODE --duration 1s");
        each(
            &ugo,
            "acquire NODE --wait --timeout 1m --take-expired --duration 5m",
        );
        each(&ugo, "release NODE");
    }
}

/// A lock of `seconds` seconds that starts at this time.
fn lock(by: &Person, count: i64, renewed: &str, seconds: i64) -> Value {
    let spec = json!({
        "holderIdentity": by.name, "acquireTime": renewed, "renewTime": renewed,
        "leaseDurationSeconds": seconds, "leaseTransitions": count,
    });
    by.signed(count, &spec)
}

fn free(by: &Person, name: &str) -> String {
    let lease = json!({"metadata": {"name": name}, "spec": {"holderIdentity": ""}});
    admitted(by.post(LEASES, &lease), "a free lease");
    format!("{LEASES}/{name}")
}

/// The limits are -4 s and +7 s, and the server truncates its time to seconds.
#[test]
fn times_a_second_off_are_admitted_and_those_beyond_the_limits_are_not() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("clock-limits");
    let ivo = person(plane, "clocks-ivo", &[USERS]);
    for (number, off) in [-1, 0, 1].into_iter().enumerate() {
        let path = free(&ivo, &format!("clock-limits-{number}"));
        for seconds in [-3600, -7, 10, 3600] {
            let answer = ivo.patch(&path, &lock(&ivo, 1, &at(seconds + off), 600));
            refused_by("maint-clock", &answer, &format!("{seconds} {off}"));
        }
        // Repeated because the time is too old after the machine has stalled.
        wait_until("a second off is admitted", || {
            ivo.patch(&path, &lock(&ivo, 1, &at(off), 600)).is_ok()
        });
    }
}

/// A client whose server is 1 s ahead considers the lock expired too early. The server that it writes to does not.
#[test]
fn no_lock_is_taken_before_its_end_by_the_clock_of_the_server_that_admits_it() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("clock-end");
    let eve = person(plane, "clocks-eve", &[USERS]);
    let eli = person(plane, "clocks-eli", &[USERS]);
    for (number, off) in [-1, 0, 1].into_iter().enumerate() {
        let path = free(&eve, &format!("clock-end-{number}"));
        wait_until("it is locked", || {
            eve.patch(&path, &lock(&eve, 1, &at(off), 4)).is_ok()
        });
        let lease = eve.get(&path);
        let renewed = lease["spec"]["renewTime"].as_str().expect("a time");
        let renewed = DateTime::parse_from_rfc3339(renewed).expect("a time");
        let end = renewed.to_utc() + TimeDelta::seconds(4 + 1);
        wait_until("the lock expires", || {
            let taken = lock(&eli, 2, &at(1), 600);
            eli.patch(&path, &taken).is_ok()
        });
        assert!(Utc::now() >= end, "{off}: taken before {end}");
    }
}
