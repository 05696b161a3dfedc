//! Completion, as kubectl and shells request it.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use control_plane::{NodeSpec, shared};
use serde_json::{Value, json};

use crate::namespace::shared_with_namespace;
use crate::support::{Installed, Run, maint, run};

/// Creates the nodes of a test, whose names have a common prefix.
fn nodes(names: &[&str]) {
    let nodes: Vec<NodeSpec> = names.iter().map(|name| NodeSpec::ready(name)).collect();
    shared_with_namespace().create_nodes(&nodes).expect("nodes");
}

/// The completions of real kubectl for these words after `kubectl`, without its messages on stderr.
fn kubectl_offers(kubeconfig: Option<&Path>, words: &[&str]) -> Vec<String> {
    let installed = Installed::new();
    let mut kubectl = shared().kubectl_command().expect("kubectl");
    kubectl
        .env("PATH", installed.path())
        .arg("__complete")
        .args(words);
    match kubeconfig {
        Some(kubeconfig) => kubectl.env("KUBECONFIG", kubeconfig),
        None => kubectl.env_remove("KUBECONFIG"),
    };
    let offered = run(&mut kubectl);
    assert_eq!(offered.code, 0, "{offered:?}");
    offered.stdout.lines().map(ToOwned::to_owned).collect()
}

/// The answer of the completer itself, run as kubectl runs it.
fn completer(words: &[&str]) -> Run {
    let installed = Installed::new();
    run(Command::new(installed.completer()).args(words).env_clear())
}

#[test]
fn kubectl_completes_verbs_and_flags() {
    assert_eq!(
        kubectl_offers(None, &["maint", "acq"]),
        ["acquire\tLock nodes", ":4"]
    );
    assert_eq!(
        kubectl_offers(None, &["maint", "acquire", "--reen"]),
        ["--reentry\tRenew the lock if you already hold it", ":4"]
    );
}

#[test]
fn kubectl_completes_the_names_in_the_kubeconfig() {
    let config = Some(shared().admin_kubeconfig());
    let offered = |words: &[&str]| {
        let words = [&["maint", "hold"], words].concat();
        kubectl_offers(config, &words)
    };
    let contexts = offered(&["--context", ""]);
    assert_eq!(
        contexts.len(),
        2,
        "one context and the directive: {contexts:?}"
    );
    assert_eq!(offered(&["--context", "no-such"]), [":4"]);
    assert_eq!(offered(&["--user", "adm"]), ["admin", ":4"]);
    assert_eq!(offered(&["--cluster", ""]).len(), 2);
}

#[test]
fn kubectl_completes_names_of_nodes_that_are_not_on_the_line_yet() {
    nodes(&["offered-1", "offered-2", "offered-3"]);
    let config = Some(shared().admin_kubeconfig());
    assert_eq!(
        kubectl_offers(config, &["maint", "acquire", "offered-"]),
        [
            "offered-1\tReady",
            "offered-2\tReady",
            "offered-3\tReady",
            ":4"
        ]
    );
    assert_eq!(
        kubectl_offers(
            config,
            &[
                "maint",
                "acquire",
                "-m",
                "why",
                "offered-1",
                "node/offered-"
            ]
        ),
        ["node/offered-2\tReady", "node/offered-3\tReady", ":4"]
    );
}

/// Creates a pod without a node.
fn pod(namespace: &str, name: &str, finalizers: &[&str]) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "finalizers": finalizers},
        "spec": {"containers": [{"name": "main", "image": "registry.example/web:1"}]},
    });
    create(namespace, &pod);
}

fn create(namespace: &str, object: &Value) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("object.json");
    fs::write(&file, object.to_string()).expect("a file");
    let file = file.display().to_string();
    let created = shared().kubectl(&["create", "-n", namespace, "-f", &file]);
    created.expect("it is created");
}

#[test]
fn pods_that_hang_are_offered_by_kind_and_name() {
    nodes(&["hanging-node"]);
    let kubectl = |arguments: &[&str]| shared().kubectl(arguments).expect("kubectl works");
    kubectl(&["create", "namespace", "hanging"]);
    pod("hanging", "web-0", &["example.com/keep"]);
    pod("hanging", "web-1", &["example.com/keep"]);
    pod("hanging", "web-2", &[]);
    let offers = |words: &[&str]| {
        let words = [&["maint", "force-delete", "-n", "hanging"], words].concat();
        kubectl_offers(Some(shared().admin_kubeconfig()), &words)
    };
    assert_eq!(
        offers(&[""]),
        ["pod/\tA pod", "node/\tA Node with all its pods", ":6"]
    );
    assert_eq!(offers(&["po"]), ["pod/\tA pod", ":6"]);
    assert_eq!(offers(&["n"]), ["node/\tA Node with all its pods", ":6"]);
    assert_eq!(offers(&["pod/web-0", "n"]), [":4"]);
    assert_eq!(
        offers(&["node/hanging"]),
        ["node/hanging-node\tReady", ":4"]
    );
    assert_eq!(offers(&["node", "hanging"]), ["hanging-node\tReady", ":4"]);
    assert_eq!(
        offers(&["pod/web-"]),
        [
            "pod/web-0\tPending",
            "pod/web-1\tPending",
            "pod/web-2\tPending",
            ":4"
        ]
    );
    kubectl(&[
        "delete",
        "pod",
        "web-0",
        "web-1",
        "-n",
        "hanging",
        "--wait=false",
    ]);
    assert_eq!(
        offers(&["po/web-0", "po/"]),
        ["po/web-1\tTerminating", ":4"]
    );
}

#[test]
fn why_completes_kinds_and_what_is_stuck() {
    let kubectl = |arguments: &[&str]| shared().kubectl(arguments).expect("kubectl works");
    kubectl(&["create", "namespace", "explained"]);
    pod("explained", "web-0", &[]);
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-0"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    create("explained", &claim);
    let offers = |words: &[&str]| {
        let words = [&["maint", "why", "-n", "explained"], words].concat();
        kubectl_offers(Some(shared().admin_kubeconfig()), &words)
    };
    assert_eq!(
        offers(&[""]),
        [
            "pod/\tA pod",
            "pvc/\tA PersistentVolumeClaim",
            "namespace/\tA namespace",
            ":6"
        ]
    );
    assert_eq!(offers(&["po/"]), ["po/web-0\tPending", ":4"]);
    assert_eq!(offers(&["pvc/"]), ["pvc/data-0\tPending", ":4"]);
    assert_eq!(offers(&["ns/expl"]), ["ns/explained\tActive", ":4"]);
    assert_eq!(offers(&["po", ""]), ["web-0\tPending", ":4"]);
    assert_eq!(offers(&["ns", "expl"]), ["explained\tActive", ":4"]);
    assert_eq!(offers(&["pod"]), ["pod/\tA pod", ":6"]);
    assert_eq!(offers(&["node/"]), [":4"], "it explains no nodes");
    assert_eq!(offers(&["pod/web-0", "n"]), [":4"], "one object is enough");
}

#[test]
fn flags_on_the_line_say_which_cluster() {
    nodes(&["flagged"]);
    let config = shared().admin_kubeconfig().display().to_string();
    for words in [
        ["maint", "--kubeconfig", &config, "acquire", "flagg"],
        ["maint", "acquire", "--kubeconfig", &config, "flagg"],
    ] {
        assert_eq!(kubectl_offers(None, &words), ["flagged\tReady", ":4"]);
    }
    assert_eq!(kubectl_offers(None, &["maint", "acquire", "flagg"]), [":4"]);
}

#[test]
fn release_and_unhold_complete_what_the_caller_holds() {
    nodes(&["back-1", "back-2", "back-3"]);
    let config = shared().admin_kubeconfig();
    let acquire = ["acquire", "back-2", "--holder", "bea", "-m", "new kernel"];
    assert_eq!(maint(config, &acquire).code, 0);
    let hold = ["hold", "back-3", "--holder", "bob", "-m", "new disk"];
    assert_eq!(maint(config, &hold).code, 0);

    let offers = |words: &[&str]| kubectl_offers(Some(config), words);
    assert_eq!(
        offers(&["maint", "release", "--holder", "bea", ""]),
        ["back-2\tbea: new kernel", ":4"]
    );
    assert_eq!(
        offers(&["maint", "release", "--holder", "eve", "back-"]),
        ["back-1\tReady", "back-2\tReady", "back-3\tReady", ":4"],
        "who holds nothing may mean any node"
    );
    assert_eq!(
        offers(&["maint", "release", "--holder", "eve", "--force", "back-"]),
        ["back-2\tbea: new kernel", ":4"]
    );
    assert_eq!(
        offers(&["maint", "unhold", "back-"]),
        ["back-3\tbob: new disk", ":4"]
    );
    assert_eq!(
        offers(&["maint", "release", "--holder", "bea", "--mine", "back-"]),
        [":4"],
        "names don't go with what selects the nodes already"
    );
}

/// Writes an annotation of ours to the Lease of `node`, as `fence` does.
fn note(node: &str, note: &str) {
    let note = format!("kubectl-maint.dev/{note}");
    let namespace = "kube-node-maintenance";
    let noted = shared().kubectl(&["annotate", "lease", node, &note, "-n", namespace]);
    noted.expect("a note");
}

#[test]
fn fenced_nodes_are_offered_to_unfence_alone() {
    let names = ["fence-1", "fence-2", "fence-3"];
    nodes(&names);
    let config = shared().admin_kubeconfig();
    let offers = |verb: &str| kubectl_offers(Some(config), &["maint", verb, "fence-"]);
    assert_eq!(offers("unfence"), [":4"]);
    let hold = |node: &str| {
        let hold = ["hold", node, "--holder", "bob", "-m", "silent"];
        assert_eq!(maint(config, &hold).code, 0);
    };
    hold("fence-1");
    note("fence-1", "purpose=fencing");
    let unhold = offers("unhold");
    assert!(!unhold.contains(&"fence-1\tReady".to_owned()), "{unhold:?}");
    hold("fence-2");
    hold("fence-3");
    note("fence-3", "fenced=true");
    assert_eq!(
        offers("unfence"),
        ["fence-1\tbob: silent", "fence-3\tbob: silent", ":4"]
    );
    assert_eq!(offers("unhold"), ["fence-2\tbob: silent", ":4"]);
}

#[test]
fn words_of_a_program_are_left_to_the_shell() {
    nodes(&["foreign-1", "foreign-2"]);
    let offers = |words: &[&str]| {
        let words = [&["maint"], words].concat();
        kubectl_offers(Some(shared().admin_kubeconfig()), &words)
    };
    assert_eq!(offers(&["with", "foreign-1", "--", ""]), [":0"]);
    assert_eq!(
        offers(&["with", "foreign-1", "--", "ssh", "foreign-"]),
        [":0"]
    );
    assert_eq!(offers(&["fence", "foreign-1", "--", "./po"]), [":0"]);
    assert_eq!(
        offers(&["with", "foreign-1", "foreign-"]),
        ["foreign-2\tReady", ":4"]
    );
}

#[test]
fn failures_of_completion_print_nothing() {
    let free_port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let refusing = format!("https://{}", free_port.expect("a port"));
    for words in [
        vec!["acquire", "--server", &refusing, "no"],
        vec!["acquire", "--kubeconfig", "/nonexistent", "no"],
        vec!["acquire", "--context", "nonexistent", "no"],
        vec!["acquire", "--nonsense", "no"],
        vec!["acquire", "pod/no"],
        vec!["nonsense", "no"],
    ] {
        let run = completer(&words);
        assert_eq!(run.stdout, ":4\n", "{words:?}");
        assert_eq!(run.stderr, "", "{words:?}");
        assert_eq!(run.code, 0, "{words:?}");
    }
}

/// Requests have no time limit here, so only completion's own limit ends this.
#[test]
fn completion_ends_if_the_server_never_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let server = format!("http://{}", listener.local_addr().expect("its address"));
    let run = completer(&[
        "acquire",
        "--request-timeout=0",
        "--server",
        &server,
        "node-",
    ]);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), (":4\n", ""));
    assert_eq!(run.code, 0);
}
