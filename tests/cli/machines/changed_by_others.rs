//! The opt-outs on a Machine, if somebody else has changed the Node, its record of the Machine, or the Machine.

use serde_json::{Value, json};

use super::{CONTEXT, HOOK, RECORD, SKIP, both, managed, opt_outs, record};
use crate::support::{LEASES, holder_of, in_memory, on_one, on_real};

/// Anybody who may write Nodes can change the recorded context. It may lead to a cluster that the user did not name, or
/// have a credential plugin that hangs.
#[test]
fn a_recorded_context_runs_its_plugin_only_for_the_recorded_cluster_and_for_a_limited_time() {
    on_real("machine-recorded-context", |cluster| {
        let (kubeconfig, node, machine) = managed(cluster);
        let maint = |arguments: &[&str]| cluster.maint(arguments).kubeconfig(&kubeconfig);
        let server = {
            maint(&["hold", &node, "-m", "disk", CONTEXT]).succeeds();
            record(cluster, &node)["server"].clone()
        };
        let ran = cluster.directory().join("plugin-ran");
        let plugin = format!("touch {}; sleep 600", ran.display());
        let kubeconfig = cluster.with_plugin(&kubeconfig, "asks", &plugin);
        let maint = |arguments: &[&str]| {
            let run = cluster.maint(arguments).kubeconfig(&kubeconfig);
            run.succeeds()
        };
        let forge = |server: &Value| {
            let mut forged = record(cluster, &node);
            forged["context"] = json!("asks");
            forged["server"] = server.clone();
            let patch = json!({"metadata": {"annotations": {RECORD: forged.to_string()}}});
            cluster.patch(&format!("/api/v1/nodes/{node}"), &patch);
        };

        forge(&json!("https://elsewhere.example"));
        let run = maint(&["unhold", &node]);
        assert!(
            run.stderr.contains("the Machine is not in context asks; it was in the cluster at https://elsewhere.example\n"),
            "{run}"
        );
        assert!(!ran.exists());
        assert_eq!(opt_outs(cluster, &machine), both());

        forge(&server);
        let run = maint(&[
            "with",
            &node,
            "--protect",
            "--request-timeout=2s",
            "--",
            "true",
        ]);
        assert!(
            run.stderr
                .contains("the credential plugin of context asks did not end in 2s\n"),
            "{run}"
        );
        assert!(ran.exists());
        assert_eq!(holder_of(cluster, &node), None);
    });
}

#[test]
fn of_a_record_that_was_edited_are_found_by_doctor() {
    in_memory("machine-edited-record", |cluster| {
        let (kubeconfig, node, machine) = managed(cluster);
        let maint = |arguments: &[&str]| cluster.maint(arguments).kubeconfig(&kubeconfig).run();
        assert_eq!(maint(&["hold", &node, "-m", "disk", CONTEXT]).code, 0);
        let edit = json!({"metadata": {"annotations": {RECORD: "garbage"}}});
        cluster.patch(&format!("/api/v1/nodes/{node}"), &edit);
        let page = maint(&["describe", &node]).stdout;
        assert!(
            page.contains("opt-outs on a Machine (the record can't be read)"),
            "{page}"
        );

        let run = maint(&["unhold", &node]);
        let said = "Warning: node/worker-1: its record of a Machine can't be read, and was removed: the opt-outs may stay \
                    on the Machine, and block its deletion and rollouts\n\
                    hint: to remove them: `kubectl maint doctor --fix --management-context=NAME`\n";
        assert!(run.code == 0 && run.to_string().contains(said), "{run}");
        assert_eq!(record(cluster, &node), Value::Null);
        assert_eq!(opt_outs(cluster, &machine), both());
        maint(&["doctor", "--fix", CONTEXT]);
        assert_eq!(opt_outs(cluster, &machine), json!({}));
    });
}

/// The Machine was restored from a backup, or the management cluster was moved.
#[test]
fn on_a_copy_of_the_machine_are_left_to_its_owner() {
    // On a shared server, `doctor --fix` would remove what other tests left on Machines.
    in_memory("machine-copy", |cluster| {
        let (kubeconfig, node, machine) = managed(cluster);
        let maint = |arguments: &[&str]| cluster.maint(arguments).kubeconfig(&kubeconfig).run();
        assert_eq!(maint(&["hold", &node, "-m", "disk", CONTEXT]).code, 0);
        let mut copy = cluster.get(&machine);
        let metadata = copy["metadata"].as_object_mut().expect("metadata");
        metadata.retain(|key, _| ["name", "annotations"].contains(&&**key));
        cluster.delete(&machine);
        let (list, _) = machine.rsplit_once('/').expect("a path");
        cluster.create(list, &copy);

        let run = maint(&["unhold", &node]);
        let left = format!(
            "Warning: node/{node}: the opt-outs on Machine default/{node}-machine stay, and block its deletion and \
             rollouts: it was created again from a copy\n\
             hint: to remove them: `kubectl --context=mgmt -n default edit machines.cluster.x-k8s.io {node}-machine`\n"
        );
        assert!(run.code == 0 && run.stderr.contains(&left), "{run}");
        let run = maint(&["doctor", "--fix", CONTEXT]);
        let found = format!("block the deletion of: default/{node}-machine of node/{node}");
        let words: Vec<&str> = run.stdout.split_whitespace().collect();
        assert!(run.code == 1 && words.join(" ").contains(&found), "{run}");
        assert_eq!(opt_outs(cluster, &machine), both());
    });
}

/// A Node has only one record, so the earlier Machine's opt-outs are removed first.
#[test]
fn on_an_earlier_machine_of_the_node_go_first() {
    on_one("machine-earlier", |cluster| {
        let (kubeconfig, node, earlier) = managed(cluster);
        let maint = |arguments: &[&str]| cluster.maint(arguments).kubeconfig(&kubeconfig).run();
        let hold = ["hold", &node, "-m", "disk", CONTEXT];
        assert_eq!(maint(&hold).code, 0);
        let later = cluster.later_machine(&node);
        let run = maint(&hold);
        assert!(run.code == 0 && !run.stderr.contains("NOT"), "{run}");
        assert_eq!(opt_outs(cluster, &earlier), json!({}));
        assert_eq!(opt_outs(cluster, &later), both());
        assert_eq!(maint(&["unhold", &node]).code, 0);
        assert_eq!(opt_outs(cluster, &later), json!({}));
    });
}

/// Two Nodes name the same Machine, or the management cluster has a Machine of the same name for another cluster.
#[test]
fn on_machines_of_other_nodes_are_left_by_doctor() {
    // On a shared server, `doctor --fix` would remove what other tests left on Machines.
    in_memory("machine-doctor-others", |cluster| {
        let (kubeconfig, node, machine) = managed(cluster);
        let maint = |arguments: &[&str]| cluster.maint(arguments).kubeconfig(&kubeconfig).run();
        assert_eq!(maint(&["hold", &node, "-m", "disk", CONTEXT]).code, 0);
        let other = cluster.node("worker-2");
        let names = json!({"metadata": {"annotations": {
            "cluster.x-k8s.io/machine": format!("{node}-machine"),
            "cluster.x-k8s.io/cluster-namespace": "default",
        }}});
        cluster.patch(&format!("/api/v1/nodes/{other}"), &names);
        let run = maint(&["doctor", "--fix", CONTEXT]);
        assert!(!run.to_string().contains("removed the opt-outs"), "{run}");
        assert_eq!(opt_outs(cluster, &machine), both());
        // The lock has ended, but this Machine is another instance.
        let spec = json!({"spec": {"providerID": "cloud://1"}});
        cluster.patch(&machine, &spec);
        let change = json!({
            "metadata": {"annotations": {RECORD: null}},
            "spec": {"providerID": "cloud://2"},
        });
        cluster.patch(&format!("/api/v1/nodes/{node}"), &change);
        let free = json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}});
        cluster.patch(&format!("{LEASES}/{node}"), &free);
        let run = maint(&["doctor", "--fix", CONTEXT]);
        assert!(!run.to_string().contains("removed the opt-outs"), "{run}");
        assert_eq!(opt_outs(cluster, &machine), both());
    });
}

#[test]
fn that_somebody_removed_are_missed_by_doctor_and_set_again_by_the_hold() {
    in_memory("machine-missing", |cluster| {
        let (kubeconfig, node, machine) = managed(cluster);
        let maint = |arguments: &[&str]| cluster.maint(arguments).kubeconfig(&kubeconfig).run();
        let hold = ["hold", &node, "-m", "disk", CONTEXT];
        assert_eq!(maint(&hold).code, 0);
        let missing = format!("on hold, but somebody removed an opt-out: {node} (cluster-api)");
        let report = || maint(&["doctor", CONTEXT, "-o", "json"]).stdout;
        assert!(!report().contains(&missing));
        for key in [SKIP, HOOK, "kubectl-maint.dev/held-lock-id"] {
            cluster.patch(&machine, &json!({"metadata": {"annotations": {key: null}}}));
        }
        let found = report();
        assert!(found.contains(&missing), "{found}");
        assert_eq!(maint(&hold).code, 0);
        assert_eq!(opt_outs(cluster, &machine), both());
        assert!(!report().contains(&missing));
    });
}

/// A Node was created from a copy of another one, or somebody who may write Nodes copied the record.
#[test]
fn a_copied_record_removes_nothing_of_another_nodes_hold() {
    on_one("machine-copied-record", |cluster| {
        let (kubeconfig, node, machine) = managed(cluster);
        let maint = |arguments: &[&str]| {
            let run = cluster.maint(arguments).kubeconfig(&kubeconfig);
            run.succeeds()
        };
        maint(&["hold", &node, "-m", "disk", CONTEXT]);
        let read = cluster.get(&format!("/api/v1/nodes/{node}"));
        let lock_id = &read["metadata"]["annotations"]["kubectl-maint.dev/held-lock-id"];
        let copy = cluster.node("worker-2");
        let copied = json!({
            RECORD: record(cluster, &node).to_string(),
            "kubectl-maint.dev/held-lock-id": lock_id,
        });
        let only_record = json!({RECORD: copied[RECORD]});
        for (is_held, copied) in [(true, &only_record), (true, &copied), (false, &copied)] {
            if is_held {
                maint(&["hold", &copy, "-m", "fan"]);
            }
            let patch = json!({"metadata": {"annotations": copied}});
            cluster.patch(&format!("/api/v1/nodes/{copy}"), &patch);
            let run = maint(&["unhold", &copy]);
            let said = format!(
                "Warning: node/{copy}: Machine default/{node}-machine (context mgmt) does not name this node; nothing \
                 was removed there\n"
            );
            assert!(run.stderr.contains(&said), "{run}");
            assert_eq!(record(cluster, &copy), Value::Null);
            assert_eq!(opt_outs(cluster, &machine), both());
        }
        maint(&["unhold", &node]);
        assert_eq!(opt_outs(cluster, &machine), json!({}));
    });
}

#[test]
fn a_context_that_leads_elsewhere_is_not_believed() {
    in_memory("machine-elsewhere", |cluster| {
        let (kubeconfig, node, machine) = managed(cluster);
        cluster
            .maint(["hold", &node, "-m", "disk", CONTEXT])
            .kubeconfig(&kubeconfig)
            .succeeds();
        in_memory("machine-other", |other| {
            let wrong = cluster.with_contexts(&[("mgmt", other.admin())]);
            let run = cluster
                .maint(["unhold", &node])
                .kubeconfig(&wrong)
                .succeeds();
            assert!(
                run.stderr
                    .contains("the Machine is not in context mgmt; it was in "),
                "{run}"
            );
        });
        assert_eq!(opt_outs(cluster, &machine), both());
        assert_ne!(record(cluster, &node), Value::Null);
        // The Machine was deleted, so nothing is left to remove.
        cluster.delete(&machine);
        let kubeconfig = cluster.with_contexts(&[("mgmt", cluster.admin())]);
        let run = cluster
            .maint(["unhold", &node])
            .kubeconfig(&kubeconfig)
            .succeeds();
        assert!(!run.stderr.contains("stay"), "{run}");
        assert_eq!(record(cluster, &node), Value::Null);
    });
}
