//! The plugin and the policies of an earlier release, together with those of this one.

use std::path::{Path, PathBuf};

use control_plane::{ControlPlane, NodeSpec};
use serde_json::Value;

use crate::support::{
    ADMINISTRATORS, HOLDERS, LEASES, PLUGIN, Person, TOUR, USERS, about, admin, await_denial,
    denying, person,
};

/// The environment variable with the path of the earlier plugin.
const EARLIER: &str = "POLICY_PREVIOUS_PLUGIN";

/// Users of a control plane, and the plugin of an earlier release.
struct Neighbors<'p> {
    plane: &'p ControlPlane,
    earlier: PathBuf,
    hugo: Person,
    ada: Person,
}

impl<'p> Neighbors<'p> {
    fn on(plane: &'p ControlPlane) -> Self {
        Self {
            plane,
            earlier: std::env::var_os(EARLIER).expect(EARLIER).into(),
            hugo: person(plane, "neighbor-hugo", &[USERS, HOLDERS]),
            ada: person(plane, "neighbor-ada", &[HOLDERS, ADMINISTRATORS]),
        }
    }

    /// Both plugins acquire, renew and end every lock, and each takes over a lock of the other.
    fn share_locks(&self, prefix: &str) {
        let earlier = self.earlier.as_path();
        let this = Path::new(PLUGIN);
        for (name, plugins) in [
            ("earlier", [earlier, earlier]),
            ("this", [this, this]),
            ("earlier-first", [earlier, this]),
            ("this-first", [this, earlier]),
        ] {
            let node = format!("{prefix}-{name}");
            let created = self.plane.create_nodes(&[NodeSpec::ready(&node)]);
            created.expect("a node");
            for (line, plugin) in TOUR.into_iter().zip(plugins.into_iter().cycle()) {
                succeeds(&self.hugo, plugin, line, &node);
            }
            let [first, second] = plugins;
            for lock in ["acquire NODE --protect", "hold NODE -m disk"] {
                succeeds(&self.hugo, first, lock, &node);
                let take = "hold NODE -m fire --take-over --yes";
                succeeds(&self.ada, second, take, &node);
                succeeds(&self.ada, first, "unhold NODE", &node);
            }
            let admin = admin(self.plane);
            let lease = admin.get(&format!("{LEASES}/{node}"));
            assert_eq!(lease["spec"]["holderIdentity"], "", "{lease}");
            let node = admin.get(&format!("/api/v1/nodes/{node}"));
            let label = &node["metadata"]["labels"]["kubectl-maint.dev/held"];
            assert_eq!(*label, Value::Null, "{node}");
            assert_ne!(node["spec"]["unschedulable"], true, "{node}");
        }
    }
}

/// Runs a line with this plugin, or with the plugin of this release if the earlier one does not have the flags yet.
#[track_caller]
fn succeeds(by: &Person, plugin: &Path, line: &str, node: &str) {
    let arguments = about(line, node);
    let mut run = by.runs(plugin, &arguments);
    let is_unknown = ["unknown flag: --", " has no flag --"];
    if is_unknown.iter().any(|said| run.stderr.contains(said)) {
        let later = ["--protect", "--cordon", "--opt-outs"];
        assert!(later.iter().any(|flag| line.contains(flag)), "{run:?}");
        run = by.runs(Path::new(PLUGIN), &arguments);
    }
    let plugin = plugin.display();
    assert_eq!(run.code, 0, "{line} by {plugin}: {run:?}");
}

#[test]
#[ignore = "needs an earlier release: cargo xtask test --previous COMMIT"]
fn these_policies_admit_the_plugins_of_both_releases() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("neighbors");
    Neighbors::on(plane).share_locks("neighbors");
}

#[test]
#[ignore = "needs an earlier release: cargo xtask test --previous COMMIT"]
fn earlier_policies_admit_the_plugins_of_both_releases_and_are_upgraded() {
    let plane = ControlPlane::start().expect("a control plane");
    let _logs = plane.keep_logs_on_panic("neighbors-upgrade");
    let admin = admin(&plane);
    let neighbors = Neighbors::on(&plane);
    for line in ["install", "enforce deny"] {
        succeeds(&admin, &neighbors.earlier, line, "");
    }
    await_denial(&admin, true);
    neighbors.share_locks("before");
    admin.succeeds(&["install"]);
    await_denial(&admin, true);
    neighbors.share_locks("after");
}
