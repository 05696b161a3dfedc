//! A disk that stalls for some seconds stops etcd. With the policies in deny mode, locks can still be kept and
//! acquired.

use std::time::{Duration, Instant};

use control_plane::NodeSpec;
use serde_json::Value;

use crate::support::{Audited, HOLDERS, LEASES, Mode, USERS, person, wait_until};

/// How long no request is answered. The plugin waits 10 s for an answer.
const STALL: Duration = Duration::from_secs(6);

#[test]
fn verbs_survive_an_etcd_that_stalls() {
    let Some(cluster) = Audited::in_turn() else {
        return;
    };
    let plane = &cluster.plane;
    let _logs = plane.keep_logs_on_panic("stall");
    cluster.set_mode(Mode::Deny);
    let name = "stall";
    plane
        .create_nodes(&[NodeSpec::ready(name)])
        .expect("a node");
    let hugo = person(plane, "stall-hugo", &[USERS, HOLDERS]);
    let holder = || {
        let lease = hugo.get(&format!("{LEASES}/{name}"));
        lease["spec"]["holderIdentity"].clone()
    };
    for (line, after) in [
        (&["acquire", name][..], "stall-hugo"),
        (&["renew", name, "--duration", "1h"], "stall-hugo"),
        (&["hold", name, "-m", "disk"], "kubeadm:stall-hugo"),
        (&["unhold", name], ""),
        (&["hold", name, "-m", "disk"], "kubeadm:stall-hugo"),
    ] {
        let run = std::thread::scope(|scope| {
            plane.etcd().stop().expect("it runs");
            let stopped = Instant::now();
            let running = scope.spawn(|| hugo.maint(line));
            wait_until("the stall is over", || stopped.elapsed() >= STALL);
            let is_finished = running.is_finished();
            plane.etcd().cont().expect("it was stopped");
            assert!(!is_finished, "{line:?} needed no etcd");
            running.join().expect("it ends")
        });
        assert_eq!(run.code, 0, "{line:?}: {run:?}");
        assert_eq!(holder(), *after, "{line:?}: {run:?}");
    }
    assert_eq!(cluster.failures("stall-"), [Value::Null; 0]);
}
