//! `status -w`: it prints changes as they happen.

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::support::Treatment::{Answer, Refuse};
use crate::support::schema::check_value;
use crate::support::{Cluster, Maint, ago, in_memory, on_both, on_one};

/// A running `status -w`, read line by line.
struct Watch {
    child: Child,
    /// `None` if stdout was closed.
    lines: Option<Lines<BufReader<ChildStdout>>>,
    prefix: String,
}

impl Watch {
    fn start(cluster: &Cluster, arguments: &[&str]) -> Self {
        Self::of(cluster, cluster.maint(arguments))
    }

    fn of(cluster: &Cluster, maint: Maint) -> Self {
        let mut child = maint
            .command()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the plugin was built");
        let stdout = child.stdout.take().expect("a pipe");
        Self {
            child,
            lines: Some(BufReader::new(stdout).lines()),
            prefix: cluster.name(""),
        }
    }

    fn line(&mut self) -> String {
        let lines = self.lines.as_mut().expect("somebody reads");
        lines.next().expect("it goes on").expect("UTF-8")
    }

    /// The first line on stderr.
    fn remark(&mut self) -> String {
        self.remarks(1).remove(0)
    }

    /// The first `count` lines on stderr.
    fn remarks(&mut self, count: usize) -> Vec<String> {
        let stderr = self.child.stderr.take().expect("a pipe");
        let lines = BufReader::new(stderr).lines().take(count);
        let lines: Vec<String> = lines.map(|line| line.expect("UTF-8")).collect();
        assert_eq!(lines.len(), count, "{lines:?}");
        lines
    }

    fn close(&mut self) {
        self.lines = None;
    }

    /// The cells of the next row, joined by single spaces, without ages.
    fn row(&mut self) -> String {
        let line = self.line();
        let cells: Vec<&str> = line.split("   ").map(str::trim).collect();
        let cells: Vec<&str> = cells.into_iter().filter(|cell| !cell.is_empty()).collect();
        let [node, state, holder, reason, _, _, status] = cells[..] else {
            panic!("{line}");
        };
        let node = node.trim_start_matches(&self.prefix);
        format!("{node} {state} {holder} {reason} {status}")
    }

    /// Sends Ctrl-C and returns the exit code.
    fn interrupt(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status();
        assert!(sent.expect("kill runs").success());
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_watch_shows_what_changes_by_writes_and_by_time() {
    on_both("status-watch", |cluster| {
        let label = json!({"status-watch": ""});
        let one = cluster.node_with("one", &label, &json!({}));
        cluster.node_with("two", &label, &json!({}));
        let mut watch = Watch::start(cluster, &["status", "-l", "status-watch", "-w"]);
        assert_eq!(watch.row(), "NODE STATE HOLDER REASON STATUS");
        assert_eq!(watch.row(), "one Free - - Ready");
        assert_eq!(watch.row(), "two Free - - Ready");
        cluster.maint(["acquire", &one, "-m", "disk"]).succeeds();
        assert_eq!(watch.row(), "one Locked alice@bastion disk Ready");
        let path = format!("/api/v1/nodes/{one}");
        cluster.patch(&path, &json!({"spec": {"unschedulable": true}}));
        let cordoned = "Ready,SchedulingDisabled";
        assert_eq!(
            watch.row(),
            format!("one Locked alice@bastion disk {cordoned}")
        );
        cluster.maint(["release", &one]).succeeds();
        assert_eq!(watch.row(), format!("one Free - - {cordoned}"));
        cluster
            .maint(["acquire", &one, "--duration", "1s"])
            .succeeds();
        assert_eq!(
            watch.row(),
            format!("one Locked alice@bastion - {cordoned}")
        );
        assert_eq!(
            watch.row(),
            format!("one Expired alice@bastion - {cordoned}")
        );
        cluster.delete(&path);
        while !watch.row().ends_with("Gone") {
            // The Lease may be deleted before the watch reports the deletion of its Node.
        }
        assert_eq!(watch.interrupt(), Some(130));
    });
}

#[test]
fn a_watch_shows_the_health_of_unhealthy_nodes() {
    on_one("status-watch-ill", |cluster| {
        let label = json!({"status-watch-ill": ""});
        let node = cluster.node_with("one", &label, &json!({}));
        let mut watch = Watch::start(cluster, &["status", "-l", "status-watch-ill", "-w"]);
        assert_eq!(watch.row(), "NODE STATE HOLDER REASON STATUS");
        assert_eq!(watch.row(), "one Free - - Ready");
        let at = ago(740);
        let at = format!("{}Z", at.split('.').next().expect("seconds"));
        let unreachable = json!([{
            "type": "Ready",
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
            "lastHeartbeatTime": at,
            "lastTransitionTime": at,
        }]);
        let path = format!("/api/v1/nodes/{node}/status");
        cluster.patch(&path, &json!({"status": {"conditions": unreachable}}));
        assert_eq!(watch.row(), "one Free - - Unreachable 12m");
        assert_eq!(watch.interrupt(), Some(130));
    });
}

#[test]
fn a_watch_of_nothing_says_so_and_goes_on() {
    on_one("status-watch-nothing", |cluster| {
        let label = "status-watch-nothing";
        let mut watch = Watch::start(cluster, &["status", "-l", label, "-w"]);
        assert_eq!(watch.remark(), "No resources found");
        cluster.node_with("one", &json!({ label: "" }), &json!({}));
        assert_eq!(watch.row(), "NODE STATE HOLDER REASON STATUS");
        assert_eq!(watch.row(), "one Free - - Ready");
        assert_eq!(watch.interrupt(), Some(130));
    });
}

#[test]
fn rows_are_shown_even_if_they_cannot_be_watched() {
    on_one("status-blind", |cluster| {
        let node = cluster.node("worker-1");
        let proxy = cluster.proxy_for(Answer(403, None), |_, path| {
            path.contains("/leases") && path.contains("watch=true")
        });
        let maint = cluster.maint(["status", &node, "-w"]);
        let mut watch = Watch::of(cluster, maint.kubeconfig(&proxy.kubeconfig));
        assert_eq!(watch.row(), "NODE STATE HOLDER REASON STATUS");
        assert_eq!(watch.row(), "worker-1 Free - - Ready");
        let remark = watch.remark();
        assert!(
            remark.contains("could not watch for changes, polling instead"),
            "{remark}"
        );
        cluster.maint(["acquire", &node, "-m", "disk"]).succeeds();
        assert_eq!(watch.row(), "worker-1 Locked alice@bastion disk Ready");
        assert_eq!(watch.interrupt(), Some(130));
    });
}

#[test]
fn a_watch_ends_when_nobody_reads_it() {
    on_one("status-pipe", |cluster| {
        let node = cluster.node("worker-1");
        let mut watch = Watch::start(cluster, &["status", &node, "-w"]);
        assert_eq!(watch.row(), "NODE STATE HOLDER REASON STATUS");
        assert_eq!(watch.row(), "worker-1 Free - - Ready");
        watch.close();
        cluster.maint(["acquire", &node]).succeeds();
        assert_eq!(watch.child.wait().expect("it ends").code(), Some(0));
    });
}

#[test]
fn a_watch_names_the_node_of_each_lock_id_unless_it_has_one_node() {
    in_memory("status-watch-ids", |cluster| {
        let nodes = ["n-1", "n-7"].map(|node| cluster.node(node));
        for node in &nodes {
            cluster.maint(["acquire", node]).succeeds();
        }
        let [one, two] = &nodes;
        let first = |nodes: &[&str]| {
            let status = [&["status"], nodes, &["-o", "lock-id"]].concat();
            let once = cluster.maint(&status).succeeds().stdout;
            let mut watch = Watch::start(cluster, &[&status[..], &["-w"]].concat());
            let lines: Vec<String> = nodes.iter().map(|_| watch.line()).collect();
            assert_eq!(once.lines().collect::<Vec<_>>(), lines);
            lines.concat()
        };
        assert!(first(&[one, two]).starts_with(&format!("{one} ")));
        assert!(!first(&[one]).contains(&**one));
    });
}

#[test]
fn custom_columns_of_a_watch_are_aligned() {
    in_memory("status-watch-columns", |cluster| {
        let node = cluster.node("worker-1");
        let columns = "custom-columns=N:.node,S:.state,H:.holder";
        let mut watch = Watch::start(cluster, &["status", &node, "-w", "-o", columns]);
        let column = |line: &str, cell: &str| {
            let index = line.find(cell);
            index.unwrap_or_else(|| panic!("no {cell} in {line}"))
        };
        let headers = watch.line();
        let first = watch.line();
        assert_eq!(column(&first, "<none>"), column(&headers, "H"));
        cluster.maint(["acquire", &node]).succeeds();
        assert_eq!(column(&watch.line(), "Locked"), column(&headers, "S"));
        cluster.maint(["release", &node]).succeeds();
        assert_eq!(column(&watch.line(), "<none>"), column(&headers, "H"));
    });
}

#[test]
fn a_watch_in_json_has_a_document_for_each_change() {
    on_one("status-watch-json", |cluster| {
        let node = cluster.node("worker-1");
        let mut watch = Watch::start(cluster, &["status", &node, "-w", "-o", "json"]);
        let mut next = || {
            let mut document = String::new();
            while !document.ends_with("\n}\n") {
                document.push_str(&watch.line());
                document.push('\n');
            }
            let document: Value = serde_json::from_str(&document).expect("a document");
            check_value(&document);
            document
        };
        assert_eq!(next()["state"], "Free");
        cluster.maint(["acquire", &node]).succeeds();
        let taken = next();
        assert_eq!(taken["state"], "Locked");
        assert_eq!(taken["holder"], "alice@bastion");
        assert!(taken["lockId"].is_string(), "{taken}");
    });
}

#[test]
fn a_failed_watch_is_reported() {
    in_memory("watch-forbidden", |cluster| {
        cluster.node("worker-1");
        let proxy = cluster.proxy_for(Refuse(403, "not you"), |_, path| {
            path.contains("watch=") && path.starts_with("/api/v1/nodes")
        });
        let status = cluster.maint(["status", "--all", "--watch"]);
        let mut watch = Watch::of(cluster, status.kubeconfig(&proxy.kubeconfig));
        assert_eq!(
            watch.remark(),
            "Warning: could not watch nodes: Error from server (Forbidden): not you"
        );
    });
}

#[test]
fn a_watch_goes_on_when_the_server_is_back() {
    in_memory("watch-down", |cluster| {
        cluster.node("worker-1");
        let is_watch = |_: &http::Method, path: &str| path.contains("watch=");
        let proxy = cluster.proxy_for(Answer(503, None), is_watch);
        let status = cluster.maint(["status", "--all", "--watch"]);
        let mut watch = Watch::of(cluster, status.kubeconfig(&proxy.kubeconfig));
        let said = watch.remarks(2);
        assert_eq!(said[1], "retrying until the API server answers", "{said:?}");
    });
}
