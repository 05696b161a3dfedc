//! A wall clock that is one hour ahead, and then jumps forward as after a pause of the machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use http::Method;
use serde_json::json;

use super::bob;
use crate::support::Treatment::{Keep, Pass};
use crate::support::{LEASES, holder_of, on_one};
use crate::wall_clock::{self, Clock};

const HOUR: i64 = 3600;

/// While the check of the lock that is already held is unanswered, the server's time is unknown.
#[test]
fn a_lease_that_only_the_local_clock_has_expired_is_not_taken() {
    let Some(library) = wall_clock::library() else {
        return;
    };
    on_one("wait-jump", |cluster| {
        let [a, b] = ["a", "b"].map(|short| cluster.node(short));
        bob(cluster, &["acquire", &b]).succeeds();
        let checks = Arc::new(AtomicBool::new(false));
        let proxy = cluster.proxy({
            let (checks, end) = (checks.clone(), format!("/leases/{a}"));
            move |method, path| {
                let is_check = method == Method::GET && path.contains(&end);
                match is_check && checks.load(Ordering::SeqCst) {
                    true => Keep,
                    false => Pass,
                }
            }
        });
        let clock = Clock::ahead(cluster.directory(), HOUR);
        let mut maint = cluster.maint(["acquire", &a, &b, "--wait", "--duration=60s"]);
        for (name, value) in wall_clock::environment(&library, &clock.fault()) {
            maint = maint.env(name, value);
        }
        let maint = maint.kubeconfig(&proxy.kubeconfig);
        let mut alice = maint.until_it_says("locked by bob@laptop");
        checks.store(true, Ordering::SeqCst);
        clock.set(HOUR + 5);
        let check = proxy.kept();
        // The watch delivers the Lease again.
        let note = json!({"metadata": {"annotations": {"example.com/note": "seen"}}});
        cluster.patch(&format!("{LEASES}/{b}"), &note);
        sleep(Duration::from_millis(1500));
        assert!(!alice.is_over(), "{}", alice.ends());
        assert_eq!(holder_of(cluster, &b).as_deref(), Some("bob@laptop"));
        checks.store(false, Ordering::SeqCst);
        assert_eq!(check.passes(), 200);
        bob(cluster, &["release", &b]).succeeds();
        let run = alice.ends();
        assert_eq!(run.code, 0, "{run}");
        for node in [&a, &b] {
            assert_eq!(holder_of(cluster, node).as_deref(), Some("alice@bastion"));
        }
    });
}
