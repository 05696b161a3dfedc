//! `doctor`: what it reads, and what locks left on Nodes.

use serde_json::json;

use crate::support::{LEASES, in_memory};

#[test]
fn long_lists_come_page_by_page() {
    in_memory("doctor-pages", |cluster| {
        let untracked = |number: usize| {
            let name = format!("lock-{number:03}");
            cluster.create(LEASES, &json!({"metadata": {"name": name}}));
        };
        (0..501).for_each(untracked);
        let run = cluster.maint(["doctor", "-v6"]).run();
        let lists = |path: &str| {
            let lists = run.stderr.lines().filter(|line| line.contains(path));
            lists.filter(|line| line.contains("limit=500")).count()
        };
        assert_eq!(lists("/leases?"), 2, "{run}");
        assert_eq!(lists("/api/v1/nodes?"), 1, "{run}");
        assert!(run.stdout.contains("leases         501 "), "{run}");
    });
}
