//! A Lease that lasts longer than a lock may: refusals have a hint to take it over.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::{Cluster, ago, holder_of, on_one};
use crate::verbs::kept_off;

/// Creates a Lease as other tools write it.
fn overlong(cluster: &Cluster, short: &str, renewed: &str, seconds: i32) -> String {
    let node = cluster.node(short);
    cluster.lease(
        &node,
        &json!({
            "holderIdentity": "bob@laptop",
            "leaseDurationSeconds": seconds,
            "acquireTime": ago(1),
            "renewTime": renewed,
        }),
    );
    node
}

#[test]
fn a_refusal_by_an_overlong_lease_says_how_to_break_it() {
    on_one("overlong", |cluster| {
        let two_hours = overlong(cluster, "worker-1", &ago(1), 7200);
        let endless = overlong(cluster, "worker-2", "9999-12-31T23:59:59.999999Z", 60);
        for node in [&two_hours, &endless] {
            for caller in ["alice@bastion", "bob@bastion"] {
                for words in kept_off(node) {
                    let run = cluster.maint(words).holder(caller).run();
                    assert!([3, 4].contains(&run.code), "{run}");
                    let line = format!("`kubectl maint release {node} --force -m WHY`\n");
                    assert!(run.stderr.ends_with(&line), "{caller}: {run}");
                }
            }
        }
        assert_snapshot!(cluster.maint(["acquire", &two_hours]).run(), @"
        $ kubectl maint acquire worker-1
        -- stderr
        error: cannot acquire node/worker-1: locked by bob@laptop (since [time], until [time], [length] left, over the 1h limit)
        hint: ask bob@laptop to release it; if nobody works there, release it with `kubectl maint release worker-1 --force -m WHY`
        -- exit code 3
        ");
        assert_eq!(
            cluster.maint(["hold", &two_hours, "-m", "fire"]).run().code,
            3
        );
        let same_user = cluster.maint(["acquire", &endless]).holder("bob@bastion");
        assert_snapshot!(same_user.run(), @"
        $ kubectl maint acquire worker-2
        -- stderr
        error: cannot acquire node/worker-2: locked by bob@laptop (since [time], until an unreadable time, over the 1h limit)
        hint: if you are bob@laptop, run `kubectl maint renew worker-2 --holder bob@laptop`; if nobody works there, release it with `kubectl maint release worker-2 --force -m WHY`
        -- exit code 3
        ");
        let pasted = ["release", &endless, "--force", "-m", "he left", "--yes"];
        cluster.maint(pasted).succeeds();
        assert_eq!(holder_of(cluster, &endless), None);
    });
}
