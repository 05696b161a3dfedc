//! The table as it is printed.

use std::collections::{BTreeMap, HashMap};

use insta::assert_snapshot;
use maintenance_lease::protocol::{Instant, Now, Span};
use maintenance_lease::{Maintenance, NodeLease, NodeLookup, NodeRow};
use pod_safety::fencing::Record;
use pod_safety::node_health::Health;
use sandbox::Sandbox;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::output::status::*;
use crate::words::cells::left;
use crate::words::fencing_annotations::FencingAnnotations;
use crate::words::lock::about;
use crate::words::state::ShownState;
use crate::words::status::{LeftOut, summary};

impl Rows {
    fn text(&self) -> String {
        let lines = self.lines.iter().map(|line| &*line.text);
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// 2026-03-01T12:00:00Z
fn noon() -> Now {
    Now::at(Instant::from_micros(1_772_366_400_000_000))
}

fn row(status: &str) -> NodeLookup {
    NodeLookup::Row(NodeRow {
        name: String::new(),
        status: status.to_owned(),
        uid: String::new(),
        deleting: false,
        labels: BTreeMap::new(),
        fenced: false,
    })
}

/// Leases as a server stores them, by node.
async fn leases(specs: &[(&str, Value, Value)]) -> HashMap<String, NodeLease> {
    let sandbox = Sandbox::new();
    for (node, annotations, spec) in specs {
        sandbox.put(json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": node,
                "namespace": maintenance_lease::NAMESPACE,
                "annotations": annotations,
            },
            "spec": spec,
        }));
    }
    let maintenance = Maintenance::new(sandbox.client(), "alice@bastion").expect("an identity");
    maintenance.list().await.expect("a list")
}

/// One of each state, as of noon.
async fn all_states() -> HashMap<String, NodeLease> {
    let held = |holder: &str, renewed: &str, seconds: u32| {
        json!({
            "holderIdentity": holder,
            "acquireTime": "2026-03-01T11:30:00.000000Z",
            "renewTime": renewed,
            "leaseDurationSeconds": seconds,
            "leaseTransitions": 7,
        })
    };
    let reason = |reason: &str| json!({"kubectl-maint.dev/reason": reason});
    let until = |until: &str| {
        json!({
            "kubectl-maint.dev/reason": "bad disk",
            "kubectl-maint.dev/hold-until": until,
        })
    };
    leases(&[
        (
            "b-held",
            reason("new kernel"),
            held("alice@bastion", "2026-03-01T11:45:00.000000Z", 1800),
        ),
        (
            "c-expired",
            reason("drivers"),
            held("bob@laptop", "2026-03-01T11:40:00.000000Z", 480),
        ),
        (
            "d-hold",
            until("2026-03-01T14:00:00Z"),
            held(
                "kubeadm:carol@desk",
                "2026-03-01T11:30:00.000000Z",
                2_147_483_647,
            ),
        ),
        (
            "e-overdue",
            until("2026-03-01T11:55:00Z"),
            held(
                "kubeadm:carol@desk",
                "2026-03-01T11:30:00.000000Z",
                2_147_483_647,
            ),
        ),
        (
            "f-ahead",
            json!({}),
            held("dave@atomic", "2026-03-01T12:01:00.000000Z", 60),
        ),
        (
            "g-overlong",
            json!({}),
            held("erin@script", "2026-03-01T11:30:00.000000Z", 86_400),
        ),
        (
            "h-unreadable",
            json!({}),
            held("frank@year", "9999-12-31T23:59:59.000000Z", 60),
        ),
        ("i-no-times", json!({}), json!({"holderIdentity": "grace"})),
        (
            "j-odd-text",
            reason("\u{1b}[31mred\nalert"),
            held("\u{202e}mallory", "2026-03-01T12:00:00.000000Z", 60),
        ),
        (
            "k-released",
            json!({
                "kubectl-maint.dev/last-holder": "kubeadm:bob@laptop",
                "kubectl-maint.dev/reason": "all fine, rebooted",
            }),
            json!({"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 3}),
        ),
    ])
    .await
}

fn views<'a>(leases: &'a HashMap<String, NodeLease>, row: &'a NodeLookup) -> Vec<View<'a>> {
    let mut nodes: Vec<&str> = leases.keys().map(String::as_str).collect();
    nodes.push("a-free");
    nodes.sort_unstable();
    nodes
        .into_iter()
        .map(|node| View {
            node,
            lease: leases.get(node),
            row,
            heartbeat: Heartbeat::At(noon().latest - Span::seconds(4)),
            health: None,
            annotations: None,
            findings: None,
            keys: None,
        })
        .collect()
}

#[tokio::test]
async fn every_state_reads_well() {
    let leases = all_states().await;
    let ready = row("Ready");
    let views = views(&leases, &ready);
    let mut table = Table::new(false, &[], true, None);
    assert_snapshot!(table.rows(&views, noon()).text(), @r"
    NODE           STATE            HOLDER            REASON                 AGE         LEFT                        STATUS
    a-free         Free             -                 -                      -           -                           Ready
    b-held         Locked           alice@bastion     new kernel             30m         15m                         Ready
    c-expired      Expired          bob@laptop        drivers                30m         12m ago                     Ready
    d-hold         OnHold           carol@desk        bad disk               30m         2h                          Ready
    e-overdue      OnHold overdue   carol@desk        bad disk               30m         5m ago                      Ready
    f-ahead        Locked           dave@atomic       -                      30m         2m (holder's clock ahead)   Ready
    g-overlong     Locked           erin@script       -                      30m         24h (over the 1h limit)     Ready
    h-unreadable   Locked           frank@year        -                      30m         <unreadable>                Ready
    i-no-times     Expired          grace             -                      <unknown>   <unknown>                   Ready
    j-odd-text     Locked           \u{202e}mallory   \u{1b}[31mred\nalert   30m         60s                         Ready
    k-released     Free             -                 -                      -           -                           Ready
    ");
    let states: Vec<_> = views
        .iter()
        .map(|view| (ShownState::of(view.lease, noon()), view.health))
        .collect();
    assert_snapshot!(summary(&states, LeftOut::default()), @"11 nodes: 2 free, 5 locked, 2 expired, 2 on hold (1 overdue)");
}

#[tokio::test]
async fn wide_shows_more() {
    let leases = all_states().await;
    let missing = NodeLookup::Missing;
    let mut views = views(&leases, &missing);
    views[0].heartbeat = Heartbeat::Unknown;
    views[1].heartbeat = Heartbeat::Missing;
    // Its row alone shows that it is healthy, so its whole Node was not read.
    views[1].health = Some(&Health::Ready);
    let annotations = FencingAnnotations {
        record: Record::parse(
            r#"{"who":"dave","when":"noon","how":{"poweredOff":"dark"},"nodeUid":"u"}"#,
        )
        .map(Box::new),
        hook: None,
    };
    views[2].annotations = Some(&annotations);
    let mut table = Table::new(true, &[], true, None);
    assert_snapshot!(table.rows(&[&views[..3], &views[10..]].concat(), noon()).text(), @"
    NODE         STATE     HOLDER          REASON       AGE   LEFT      STATUS   HEARTBEAT   ACQUIRED               RENEWED                TRANSITIONS   LAST HOLDER   NOTE                 FENCING                              OTHER TOOLS
    a-free       Free      -               -            -     -         Gone     <unknown>   -                      -                      -             -             -                    <unknown>                            <unknown>
    b-held       Locked    alice@bastion   new kernel   30m   15m       Gone     -           2026-03-01T11:30:00Z   2026-03-01T11:45:00Z   7             -             -                    -                                    -
    c-expired    Expired   bob@laptop      drivers      30m   12m ago   Gone     4s          2026-03-01T11:30:00Z   2026-03-01T11:40:00Z   7             -             -                    by dave at noon, powered off: dark   <unknown>
    k-released   Free      -               -            -     -         Gone     4s          -                      -                      3             bob@laptop    all fine, rebooted   <unknown>                            <unknown>
    ");
}

/// `holder` holds `worker-1`, for a minute from noon on, because of `reason`.
async fn held_by(holder: &str, reason: &str) -> HashMap<String, NodeLease> {
    let spec = json!({
        "holderIdentity": holder,
        "acquireTime": "2026-03-01T11:30:00.000000Z",
        "renewTime": "2026-03-01T12:00:00.000000Z",
        "leaseDurationSeconds": 60,
    });
    let reason = json!({"kubectl-maint.dev/reason": reason});
    leases(&[("worker-1", reason, spec)]).await
}

const LONG: &str = "new kernel, then the drivers, then a look at the disks";

/// The width of the widest line.
fn width(text: &str) -> usize {
    text.lines()
        .map(UnicodeWidthStr::width)
        .max()
        .unwrap_or_default()
}

#[tokio::test]
async fn a_narrow_terminal_keeps_reasons_readable() {
    let ready = row("Ready");
    let mut leases = held_by("alice@bastion.example", LONG).await;
    let at = |leases: &HashMap<String, NodeLease>, fit| {
        Table::new(false, &[], true, fit)
            .rows(&views(leases, &ready)[1..], noon())
            .text()
    };
    assert!(at(&leases, None).contains(LONG), "a pipe gets all of it");
    assert_snapshot!(at(&leases, Some(88)), @"
    NODE       STATE    HOLDER                  REASON                   AGE   LEFT   STATUS
    worker-1   Locked   alice@bastion.example   new kernel, then the …   30m   60s    Ready
    ");
    assert_snapshot!(at(&leases, Some(81)), @"
    NODE       STATE    HOLDER                  REASON                  LEFT   STATUS
    worker-1   Locked   alice@bastion.example   new kernel, then the…   60s    Ready
    ");
    for fit in 81..100 {
        let text = at(&leases, Some(fit));
        assert!(width(&text) <= fit, "{fit}:\n{text}");
    }
    let narrow = at(&leases, Some(60));
    assert!(narrow.contains("new kernel, then th"), "{narrow}");
    leases = held_by("alice@bastion", "新しいカーネルと新しいドライバー").await;
    assert_snapshot!(at(&leases, Some(80)), @"
    NODE       STATE    HOLDER          REASON                   AGE   LEFT   STATUS
    worker-1   Locked   alice@bastion   新しいカーネルと新し…    30m   60s    Ready
    ");
    leases = held_by(&"x".repeat(900), LONG).await;
    for fit in [None, Some(120)] {
        assert!(
            at(&leases, fit).contains(&"x".repeat(900)),
            "names are never cut"
        );
    }
}

#[tokio::test]
async fn a_wide_table_is_whole_on_a_terminal_that_wraps_it_anyway() {
    let leases = held_by("alice@bastion.example", LONG).await;
    let ready = row("Ready");
    let text = Table::new(true, &[], true, Some(80))
        .rows(&views(&leases, &ready)[1..], noon())
        .text();
    assert!(
        text.contains(&format!("   alice@bastion.example   {LONG}   ")),
        "{text}"
    );
}

#[tokio::test]
async fn endless_text_of_others_is_cut_everywhere() {
    let long = "x".repeat(100_000);
    let leases = leases(&[(
        "worker-1",
        json!({"kubectl-maint.dev/reason": long}),
        json!({"holderIdentity": format!("{long}\n")}),
    )])
    .await;
    let unread = NodeLookup::Unread;
    for fit in [None, Some(300)] {
        let text = Table::new(true, &[], true, fit)
            .rows(&views(&leases, &unread), noon())
            .text();
        let lengths: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(lengths.len(), 3, "no cell is wrapped");
        assert!(
            lengths.iter().all(|&length| length < 4096),
            "{lengths:?} bytes"
        );
    }
}

#[tokio::test]
async fn a_holder_that_looks_like_nobody_is_quoted() {
    let ready = row("Ready");
    let mut held = held_by("  ", "disk").await;
    let hold = json!({"holderIdentity": "kubeadm: "});
    let last = json!({"kubectl-maint.dev/last-holder": "\u{a0}"});
    let more = [("worker-2", json!({}), hold), ("worker-3", last, json!({}))];
    held.extend(leases(&more).await);
    let text = Table::new(true, &[], true, None)
        .rows(&views(&held, &ready)[1..], noon())
        .text();
    assert_snapshot!(text, @r#"
    NODE       STATE    HOLDER   REASON   AGE         LEFT   STATUS   HEARTBEAT   ACQUIRED               RENEWED                TRANSITIONS   LAST HOLDER   NOTE   FENCING     OTHER TOOLS
    worker-1   Locked   "  "     disk     30m         60s    Ready    4s          2026-03-01T11:30:00Z   2026-03-01T12:00:00Z   0             -             -      <unknown>   <unknown>
    worker-2   OnHold   " "      -        <unknown>   -      Ready    4s          <unknown>              <unknown>              0             -             -      <unknown>   <unknown>
    worker-3   Free     -        -        -           -      Ready    4s          -                      -                      0             " "           -      <unknown>   <unknown>
    "#);
}

#[tokio::test]
async fn rows_that_come_later_stand_under_the_same_headers() {
    let leases = all_states().await;
    let ready = row("Ready");
    let mut views = views(&leases, &ready);
    for view in &mut views {
        view.node = "worker-1";
    }
    let column = |line: &str, cells: &[&str]| {
        let index = cells.iter().find_map(|cell| line.find(cell))?;
        Some(line[..index].width())
    };
    for fit in [None, Some(80), Some(200)] {
        let mut table = Table::new(false, &[], true, fit).for_rows_to_come();
        let first = table.rows(&views[..1], noon()).text();
        let later = table.rows(&views[1..4], noon()).text();
        assert!(!later.contains("NODE"), "no headers again:\n{later}");
        let all = format!("{first}\n{later}");
        for (cells, count) in [
            (&["STATUS", "Ready"][..], 5),
            (&["HOLDER", "alice@", "bob@", "carol@"], 4),
            (&["LEFT", "15m", "12m ago", "2h"], 4),
        ] {
            let columns = all.lines().filter_map(|line| column(line, cells));
            let columns: Vec<usize> = columns.collect();
            assert_eq!(columns, vec![columns[0]; count], "{cells:?}:\n{all}");
        }
    }
}

#[tokio::test]
async fn a_row_that_comes_later_is_cut_to_the_terminal() {
    let free = HashMap::new();
    let held = held_by("alice@bastion.example", LONG).await;
    let ready = row("Ready");
    let mut before = views(&free, &ready);
    before[0].node = "worker-1";
    let followed = |fit| {
        let mut table = Table::new(false, &[], true, Some(fit)).for_rows_to_come();
        let first = table.rows(&before, noon()).text();
        let later = table.rows(&views(&held, &ready)[1..], noon()).text();
        format!("{first}\n{later}")
    };
    assert_snapshot!(followed(110), @"
    NODE       STATE     HOLDER          REASON                         AGE     LEFT      STATUS
    worker-1   Free      -               -                              -       -         Ready
    worker-1   Locked    alice@bastion.example   new kernel, then the driver…   30m     60s       Ready
    ");
}

#[tokio::test]
async fn a_live_kubelet_on_a_node_out_of_service_must_not_be_overlooked() {
    let leases = HashMap::new();
    let ready = row("Ready");
    let [view] = views(&leases, &ready)[..] else {
        panic!("one node")
    };
    let alive = Health::KubeletAlive { by: None };
    let second = View {
        health: Some(&alive),
        ..view
    };
    let mut table = Table::new(false, &[], true, None);
    let rows = table.rows(&[view, second], noon());
    let alarming: Vec<bool> = rows.lines.iter().map(|line| line.is_alarming).collect();
    assert_eq!(alarming, [false, false, true]);
}

#[tokio::test]
async fn a_lock_whose_end_has_come_has_no_time_left() {
    let spec = json!({
        "holderIdentity": "bob@laptop",
        "acquireTime": "2026-03-01T11:59:57.000000Z",
        "renewTime": "2026-03-01T11:59:57.000000Z",
        "leaseDurationSeconds": 1,
    });
    let leases = leases(&[("a", json!({}), spec)]).await;
    let (lease, now) = (&leases["a"], noon());
    assert_eq!(left(lease, now), "expires now");
    let about = about(lease, lease.state(now), now);
    let says = "expires now; anyone may acquire it after ";
    assert!(about.contains(says) && !about.contains("left"), "{about}");
}
