//! The control plane with its real processes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};
use std::{env, fs, io, panic, process, thread};

use control_plane::{
    Authority, Component, ControlPlane, Kubeconfig, NodeSpec, Readiness, Return, Rule, shared,
    target_dir,
};

/// Runs kubectl with this kubeconfig. Returns its stdout, or its stderr if it failed.
fn kubectl(kubeconfig: &Path, args: &[&str]) -> Result<String, String> {
    let output = shared()
        .kubectl_command()
        .unwrap()
        .env("KUBECONFIG", kubeconfig)
        .args(args)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() {
        Ok(text(output.stdout))
    } else {
        Err(text(output.stderr))
    }
}

/// Repeats `answer` until it returns true, for up to 60 s.
fn eventually(what: &str, mut answer: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !answer() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Whether the process is running and belongs to the control plane with this directory.
fn lives(pid: u32, directory: &Path) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|command_line| {
        String::from_utf8_lossy(&command_line).contains(directory.to_str().unwrap())
    })
}

fn pids(control_plane: &ControlPlane) -> Vec<u32> {
    [
        Some(control_plane.etcd()),
        Some(control_plane.api_server()),
        control_plane.controller_manager(),
    ]
    .into_iter()
    .flatten()
    .filter_map(Component::pid)
    .collect()
}

#[test]
fn administrator_sees_a_cluster_of_the_pinned_version() {
    let version = shared().kubectl(&["version", "-o", "json"]).unwrap();
    assert_eq!(
        version.matches(control_plane::KUBERNETES_VERSION).count(),
        2,
        "{version}"
    );
    let namespaces = shared()
        .kubectl(&["get", "namespaces", "-o", "name"])
        .unwrap();
    assert!(
        namespaces.contains("namespace/kube-node-lease"),
        "{namespaces}"
    );
}

#[test]
fn user_without_rights_is_refused_until_they_are_granted() {
    let alice = shared().user("alice", &[]).unwrap();
    let refusal = kubectl(&alice, &["get", "nodes"]).unwrap_err();
    assert!(
        refusal.contains(r#"(Forbidden): nodes is forbidden: User "alice""#),
        "{refusal}"
    );

    shared()
        .grant("alice", &[Rule::new("", &["nodes"], &["list"])])
        .unwrap();

    kubectl(&alice, &["get", "nodes"]).unwrap();
    let refusal = kubectl(&alice, &["delete", "node", "alices-node"]).unwrap_err();
    assert!(refusal.contains("(Forbidden)"), "{refusal}");
}

#[test]
fn rule_with_names_allows_these_names_only() {
    let bob = shared().user("bob", &[]).unwrap();
    let rule = Rule::new("", &["namespaces"], &["get"]).named(&["kube-system"]);
    shared().grant("bob", &[rule]).unwrap();
    kubectl(&bob, &["get", "namespace", "kube-system"]).unwrap();
    let refusal = kubectl(&bob, &["get", "namespace", "default"]).unwrap_err();
    assert!(refusal.contains("(Forbidden)"), "{refusal}");
}

#[test]
fn user_gets_the_rights_of_a_bound_role() {
    let carol = shared().user("carol", &[]).unwrap();
    shared().bind("carol", "view").unwrap();
    kubectl(&carol, &["get", "configmaps", "-A"]).unwrap();
    let refusal = shared().bind("carol", "no-such-role").unwrap_err();
    assert!(
        format!("{refusal:#}").contains("no-such-role"),
        "{refusal:#}"
    );
}

#[test]
fn groups_are_those_of_the_certificate() {
    let dave = shared().user("dave", &["operators", "people"]).unwrap();
    let who = kubectl(
        &dave,
        &["auth", "whoami", "-o", "jsonpath={.status.userInfo.groups}"],
    );
    assert_eq!(
        who.unwrap(),
        r#"["operators","people","system:authenticated"]"#
    );
    let refusal = shared().user("dave", &["one", "two", "three"]).unwrap_err();
    assert_eq!(refusal.to_string(), "more than two groups for dave");
}

#[test]
fn expired_certificate_is_refused() {
    let hour = Duration::from_secs(3600);
    let now = SystemTime::now();
    let identity = shared()
        .authority()
        .client_valid("erin", &[], now - 2 * hour..now - hour)
        .unwrap();
    let erin = shared().write_kubeconfig("erin", &identity).unwrap();
    let refusal = kubectl(&erin, &["auth", "whoami"]).unwrap_err();
    assert!(refusal.contains("logged in to the server"), "{refusal}");
}

#[test]
fn nodes_look_as_their_kubelets_left_them() {
    let nodes = [
        NodeSpec::ready("looks-ready").label("looks", "yes"),
        NodeSpec {
            ready: Readiness::NotReady,
            ..NodeSpec::ready("looks-broken")
        }
        .label("looks", "yes"),
        NodeSpec {
            unschedulable: true,
            ..NodeSpec::ready("looks-cordoned")
        }
        .label("looks", "yes"),
    ];
    shared().create_nodes(&nodes).unwrap();
    let table = shared()
        .kubectl(&["get", "nodes", "-l", "looks=yes", "--no-headers"])
        .unwrap();
    let seen: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().take(2).collect())
        .collect();
    assert_eq!(
        seen,
        [
            ["looks-broken", "NotReady"],
            ["looks-cordoned", "Ready,SchedulingDisabled"],
            ["looks-ready", "Ready"],
        ]
    );
    let refusal = shared().create_nodes(&nodes[..1]).unwrap_err();
    assert!(
        format!("{refusal:#}").contains("already exists"),
        "{refusal:#}"
    );
}

#[test]
fn heartbeat_moves_on_when_it_is_renewed() {
    let renew_time = || {
        let path = "jsonpath={.spec.renewTime}";
        shared()
            .kubectl(&["get", "lease", "-n", "kube-node-lease", "beats", "-o", path])
            .unwrap()
    };
    let old = NodeSpec {
        heartbeat_age: Duration::from_secs(30),
        ..NodeSpec::ready("beats")
    };
    shared().create_nodes(&[old]).unwrap();
    let before = renew_time();
    shared().heartbeat(&["beats"]).unwrap();
    let after = renew_time();
    assert!(before < after, "{before} {after}");
    assert!(shared().heartbeat(&["no-such-node"]).is_err());
}

#[test]
fn controller_manager_collects_what_a_deleted_node_owned() {
    shared().create_nodes(&[NodeSpec::ready("owner")]).unwrap();
    let uid = shared().kubectl(&["get", "node", "owner", "-o", "jsonpath={.metadata.uid}"]);
    let owned = format!(
        r#"{{"metadata": {{"ownerReferences": [
            {{"apiVersion": "v1", "kind": "Node", "name": "owner", "uid": "{}"}}]}}}}"#,
        uid.unwrap()
    );
    let lease = ["lease", "-n", "kube-node-lease", "owner"];
    shared()
        .kubectl(&[&["patch"], &lease[..], &["--type=merge", "-p", &owned]].concat())
        .unwrap();
    shared().kubectl(&["delete", "node", "owner"]).unwrap();
    eventually("the node's lease is collected", || {
        shared().kubectl(&[&["get"], &lease[..]].concat()).is_err()
    });
}

#[test]
fn controller_manager_with_a_short_grace_period_finds_an_unreachable_node() {
    let control_plane = ControlPlane::builder()
        .controller_manager_flag("--node-monitor-period=1s")
        .controller_manager_flag("--node-monitor-grace-period=2s")
        .start()
        .unwrap();
    let _logs = control_plane.keep_logs_on_panic("unreachable-node");
    let unreachable = NodeSpec {
        heartbeat_age: Duration::from_secs(3600),
        ..NodeSpec::ready("unreachable")
    };
    control_plane.create_nodes(&[unreachable]).unwrap();
    eventually("the node is found unreachable", || {
        let status = "jsonpath={.status.conditions[?(@.type=='Ready')].status}";
        control_plane
            .kubectl(&["get", "node", "unreachable", "-o", status])
            .unwrap()
            == "Unknown"
    });
}

/// The tests of fencing rely on this: a pod of an unreachable node is neither removed nor replaced.
#[test]
fn stand_ins_run_pods_until_their_heartbeats_stop() {
    let control_plane = ControlPlane::builder()
        .for_unreachable_nodes()
        .start()
        .unwrap();
    let _logs = control_plane.keep_logs_on_panic("stand-ins");
    let kubelets = control_plane
        .kubelets(&["alive", "mute"], &[("topology.kubernetes.io/zone", "a")])
        .unwrap();
    let get = |what: &[&str], path: &str| {
        let output = format!("jsonpath={path}");
        control_plane
            .kubectl(&[&["get"], what, &["-o", &output]].concat())
            .unwrap()
    };
    let ready = |node: &str| {
        let path = "{.status.conditions[?(@.type=='Ready')].status}";
        get(&["node", node], path)
    };
    for (pod, node) in [("short", "alive"), ("long", "mute")] {
        control_plane
            .kubectl(&["run", pod, "--image=none"])
            .unwrap();
        control_plane.bind_pod("default", pod, node).unwrap();
        eventually("it runs", || {
            get(&["pod", pod], "{.status.phase}") == "Running"
        });
    }
    let boot_id = get(&["node", "mute"], "{.status.nodeInfo.bootID}");

    kubelets
        .stop_heartbeats("mute", Duration::from_secs(120))
        .unwrap();
    eventually("the node is found unreachable", || {
        ready("mute") == "Unknown"
    });
    assert_eq!(ready("alive"), "True");
    eventually("its pod is evicted", || {
        !get(&["pod", "long"], "{.metadata.deletionTimestamp}").is_empty()
    });
    control_plane
        .kubectl(&["delete", "pod", "short", "--timeout=60s"])
        .unwrap();
    assert_eq!(get(&["pod", "long"], "{.status.phase}"), "Running");

    kubelets.bring_back("mute", Return::SameBoot).unwrap();
    assert_eq!(get(&["node", "mute"], "{.status.nodeInfo.bootID}"), boot_id);
    eventually("it finishes the deletion", || {
        get(&["pods"], "{.items[*].metadata.name}").is_empty()
    });
    kubelets.bring_back("mute", Return::Rebooted).unwrap();
    assert_ne!(get(&["node", "mute"], "{.status.nodeInfo.bootID}"), boot_id);
}

#[test]
fn handle_may_be_used_from_inside_an_async_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let refusal = runtime.block_on(async {
        let control_plane = ControlPlane::builder()
            .controller_manager(false)
            .start()
            .unwrap();
        control_plane
            .create_nodes(&[NodeSpec::ready("async-node")])
            .unwrap();
        control_plane
            .create_nodes(&[NodeSpec::ready("async-node")])
            .unwrap_err()
    });
    assert!(
        format!("{refusal:#}").contains("already exists"),
        "{refusal:#}"
    );
}

#[test]
fn server_of_another_authority_is_not_trusted() {
    let stranger = Authority::new("stranger").unwrap();
    let path = shared().directory().join("wrong-authority.kubeconfig");
    Kubeconfig {
        server: shared().url(),
        ca_pem: &stranger.pem(),
        user: "admin",
        identity: shared().admin(),
    }
    .write(&path)
    .unwrap();
    let refusal = kubectl(&path, &["get", "nodes"]).unwrap_err();
    assert!(
        refusal.contains("certificate signed by unknown authority"),
        "{refusal}"
    );
}

#[test]
fn processes_stop_go_on_die_and_come_back_with_their_data() {
    let control_plane = ControlPlane::builder()
        .controller_manager(false)
        .start()
        .unwrap();
    let _logs = control_plane.keep_logs_on_panic("processes");
    assert!(control_plane.controller_manager().is_none());
    control_plane
        .kubectl(&["create", "namespace", "keepsake"])
        .unwrap();
    let server = control_plane.api_server();
    let before = server.pid().unwrap();
    let read = ["get", "namespace", "keepsake", "--request-timeout=2s"];

    server.stop().unwrap();
    control_plane.kubectl(&read).unwrap_err();
    server.cont().unwrap();
    server.await_ready().unwrap();
    control_plane.kubectl(&read).unwrap();
    assert_eq!(server.pid(), Some(before));

    control_plane.etcd().kill().unwrap();
    assert_eq!(control_plane.etcd().pid(), None);
    assert!(control_plane.etcd().stop().is_err());
    server.kill().unwrap();
    control_plane.kubectl(&read).unwrap_err();
    control_plane.etcd().restart().unwrap();
    server.restart().unwrap();
    control_plane.kubectl(&read).unwrap();
    assert_ne!(server.pid(), Some(before));
}

#[test]
fn dropping_it_ends_its_processes_and_removes_its_files() {
    let control_plane = ControlPlane::builder().fsync(true).start().unwrap();
    let directory = control_plane.directory().to_owned();
    assert!(
        directory.starts_with(target_dir()),
        "a disk for etcd: {}",
        directory.display()
    );
    let pids = pids(&control_plane);
    assert_eq!(pids.len(), 3);
    assert!(pids.iter().all(|&pid| lives(pid, &directory)));
    control_plane.api_server().stop().unwrap();

    drop(control_plane);

    assert!(!pids.iter().any(|&pid| lives(pid, &directory)));
    assert!(!directory.exists());
}

/// The test starts itself again as another process, and kills that one.
#[test]
fn killing_its_process_ends_the_control_plane_as_well() {
    const HOLDER: &str = "CONTROL_PLANE_TEST_HOLDER";
    if let Some(report) = env::var_os(HOLDER) {
        let control_plane = ControlPlane::start().unwrap();
        control_plane.keep_logs("killed");
        let pids: Vec<String> = pids(&control_plane).iter().map(u32::to_string).collect();
        let report = PathBuf::from(report);
        let unfinished = report.with_extension("unfinished");
        let lines = format!(
            "{}\n{}",
            control_plane.directory().display(),
            pids.join("\n")
        );
        fs::write(&unfinished, lines).unwrap();
        fs::rename(unfinished, report).unwrap();
        let _until_killed = io::stdin().read_line(&mut String::new());
        process::exit(0);
    }

    let scratch = tempfile::tempdir().unwrap();
    let report = scratch.path().join("report");
    let mut holder = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "killing_its_process_ends_the_control_plane_as_well",
        ])
        .env(HOLDER, &report)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the other process holds a control plane", || {
        assert!(
            holder.try_wait().unwrap().is_none(),
            "the other process failed"
        );
        report.exists()
    });
    let report = fs::read_to_string(report).unwrap();
    let (directory, pids) = report.split_once('\n').unwrap();
    let directory = Path::new(directory);
    let pids: Vec<u32> = pids.lines().map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(pids.len(), 3);
    assert!(pids.iter().all(|&pid| lives(pid, directory)));

    holder.kill().unwrap();
    holder.wait().unwrap();

    eventually("the processes are gone", || {
        !pids.iter().any(|&pid| lives(pid, directory))
    });
    eventually("the files are gone", || !directory.exists());
    let logs = target_dir().join("control-plane-logs/killed");
    assert!(logs.join("kube-apiserver.log").is_file());
    fs::remove_dir_all(logs).unwrap();
}

#[test]
fn logs_are_kept_only_if_a_test_panics() {
    let run = |name: &'static str, fails: bool| {
        let outcome = panic::catch_unwind(|| {
            let control_plane = ControlPlane::builder()
                .controller_manager(false)
                .start()
                .unwrap();
            let _logs = control_plane.keep_logs_on_panic(name);
            if fails {
                panic::resume_unwind(Box::new("a failed assertion"));
            }
        });
        assert_eq!(outcome.is_err(), fails);
        target_dir().join("control-plane-logs").join(name)
    };
    let kept = run("failing-test", true);
    assert!(
        fs::read_to_string(kept.join("etcd.log"))
            .unwrap()
            .contains("etcd")
    );
    assert!(kept.join("kube-apiserver.log").is_file());
    fs::remove_dir_all(kept).unwrap();
    assert!(!run("passing-test", false).exists());
}
