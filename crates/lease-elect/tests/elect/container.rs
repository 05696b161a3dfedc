//! Tests lease-elect as the first process of a container.

use std::process::{Command, Stdio};

use libtest_mimic::{Completion, Trial};
use rustix::process::Signal;

use crate::support::candidate::send;
use crate::support::cluster::Cluster;

/// Set this variable if the system does not allow process namespaces. The tests that need one are then
/// skipped instead of failing.
const WITHOUT_PID_NAMESPACE: &str = "TESTS_WITHOUT_PID_NAMESPACE";

/// These tests are skipped only on request.
pub(crate) fn tests() -> Vec<Trial> {
    vec![Trial::ignorable_test(
        "in_memory::container::it_ends_its_daemon_and_releases_the_lease",
        || {
            let new = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
            let as_user: Vec<&str> = new
                .into_iter()
                .chain(["--user", "--map-root-user"])
                .collect();
            let wrappers = [&new[..], &as_user];
            let Some(wrapper) = wrappers.into_iter().find(|wrapper| works(wrapper)) else {
                let hint = "no process namespace can be made here";
                assert!(
                    std::env::var_os(WITHOUT_PID_NAMESPACE).is_some(),
                    "{hint}; with {WITHOUT_PID_NAMESPACE}=1 this test is left out"
                );
                return Ok(Completion::ignored_with(hint));
            };
            it_ends_its_daemon_and_releases_the_lease(wrapper);
            Ok(Completion::Completed)
        },
    )]
}

fn it_ends_its_daemon_and_releases_the_lease(wrapper: &[&str]) {
    let cluster = Cluster::in_memory("container");
    let setup = cluster.candidate("a").by(wrapper);
    // Process ids are those inside the container.
    let mut a = setup.on_term("echo end $PPID >> $JOURNAL; exit 7").start();
    a.says("_1_");
    cluster.journal.wait_for("begin a");
    let children = format!("/proc/{0}/task/{0}/children", a.pid());
    let first = std::fs::read_to_string(children).expect("it has a child");
    send(first.trim().parse().expect("one process"), Signal::TERM);
    assert_eq!(a.code(), Some(7));
    a.says("released the lease");
    assert_eq!(cluster.spec()["holderIdentity"], "");
}

fn works(wrapper: &[&str]) -> bool {
    Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg("true")
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
