//! A wall clock that is one hour ahead, and then jumps forward as after a pause of the machine.

use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use super::bob;
use crate::support::{LEASES, holder_of, on_one};
use crate::wall_clock::{self, Clock};

const HOUR: i64 = 3600;

#[test]
fn a_lease_that_only_the_local_clock_has_expired_is_not_taken() {
    let Some(library) = wall_clock::library() else {
        return;
    };
    on_one("wait-jump", |cluster| {
        let node = cluster.node("worker-1");
        bob(cluster, &["acquire", &node]).succeeds();
        let clock = Clock::ahead(cluster.directory(), HOUR);
        let mut maint = cluster.maint(["acquire", &node, "--wait"]);
        for (name, value) in wall_clock::environment(&library, &clock.fault()) {
            maint = maint.env(name, value);
        }
        let mut alice = maint.until_it_says("locked by bob@laptop");
        clock.set(HOUR + 5);
        // The watch delivers the Lease again.
        let note = json!({"metadata": {"annotations": {"example.com/note": "seen"}}});
        cluster.patch(&format!("{LEASES}/{node}"), &note);
        sleep(Duration::from_millis(1500));
        assert!(!alice.is_over(), "{}", alice.ends());
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
        bob(cluster, &["release", &node]).succeeds();
        let run = alice.ends();
        assert_eq!(run.code, 0, "{run}");
        let holder = holder_of(cluster, &node);
        assert_eq!(holder.as_deref(), Some("alice@bastion"));
    });
}
