//! Outages of the control plane for all contenders. Each of these scenarios uses the control plane
//! alone.

use std::thread::sleep;
use std::time::Duration;

use control_plane::ControlPlane;

use crate::support::scenario::{DONE, LOST, Scenario};
use crate::support::shared_cluster::{Access, Outage};

/// A command with a short lease is ended in time, and one with a long lease survives. Afterwards,
/// every contender gets the lock. The outage takes at least `length`.
fn outage(name: &str, length: Duration, begin: fn(&'static ControlPlane) -> Outage) {
    let access = Access::alone();
    let mut short = Scenario::new(&access, &format!("{name}-short"));
    let mut long = Scenario::new(&access, &format!("{name}-long"));
    let holder = short.begins("a", short.usual());
    short.joined_by(&["b", "c"]);
    let mut options = long.usual();
    options.lease = Duration::from_secs(120);
    let patient = long.begins("a", options);
    long.joined_by(&["b"]);

    let outage = begin(access.plane());
    short.is_cut_off(&holder);
    sleep(length);
    assert_eq!(holder.first_exit(), LOST);
    drop(outage);
    short.all_have_a_turn();
    short.ends();

    patient.finishes();
    assert_eq!(patient.first_exit(), DONE);
    long.all_have_a_turn();
    long.ends();
}

#[test]
fn a_killed_api_server() {
    outage("api-server", Duration::ZERO, Outage::api_server_killed);
}

#[test]
fn a_stopped_etcd() {
    outage("etcd", Duration::from_secs(20), Outage::etcd_stopped);
}
