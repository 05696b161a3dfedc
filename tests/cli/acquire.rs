//! `acquire`.

use insta::assert_snapshot;

use crate::support::on_both;

#[test]
fn a_free_node_is_acquired_and_the_next_one_is_told_everything() {
    on_both("acquire-free", |cluster| {
        let node = cluster.node("worker-1");
        cluster.namespace();
        assert_snapshot!(
            cluster.maint(["acquire", &node, "-m", "new kernel"]).run(),
            @""
        );
        assert_snapshot!(
            cluster.maint(["acquire", &node]).holder("bob@laptop").run(),
            @""
        );
    });
}
