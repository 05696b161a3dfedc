//! Watches of an in-memory API server, in tokio's paused time: waits take none.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyStream, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use sandbox::Sandbox;
use serde_json::{Value, json};
use tower::{BoxError, ServiceExt as _};

use super::*;
use crate::{Maintenance, Repository, Right, RowDetail};

type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// What becomes of a request.
enum Fate {
    Pass,
    /// Something on the way answers it.
    Refused(StatusCode),
    /// It is answered, but the connection breaks after that many pieces of the answer.
    CutAfter(usize),
}

/// A server, and what was asked of it.
struct Fixture {
    sandbox: Sandbox,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Fixture {
    fn new() -> Self {
        Self {
            sandbox: Sandbox::new(),
            requests: Arc::default(),
        }
    }

    fn maintenance(&self) -> Maintenance {
        self.maintenance_where(|_, _| Fate::Pass)
    }

    /// A client for which `fate` decides on each request by its number, from 0 on, and its path.
    fn maintenance_where(
        &self,
        fate: impl Fn(usize, &str) -> Fate + Send + Sync + 'static,
    ) -> Maintenance {
        let (service, requests, fate) = (
            self.sandbox.service(),
            self.requests.clone(),
            Arc::new(fate),
        );
        let client = Client::new(
            tower::service_fn(move |request: Request<Body>| {
                let path = request.uri().to_string();
                let number = {
                    let mut requests = requests.lock().expect("no test panicked");
                    requests.push(path.clone());
                    requests.len() - 1
                };
                let (service, fate) = (service.clone(), fate.clone());
                async move {
                    Ok::<_, Infallible>(match fate(number, &path) {
                        Fate::Refused(code) => refusal(code),
                        Fate::Pass => answer(service.oneshot(request).await, usize::MAX),
                        Fate::CutAfter(pieces) => answer(service.oneshot(request).await, pieces),
                    })
                }
            }),
            "default",
        );
        Maintenance::new(client, "alice").expect("an identity")
    }

    /// The watches that were opened.
    fn watches(&self) -> Vec<String> {
        self.requested(true)
    }

    fn lists(&self) -> Vec<String> {
        self.requested(false)
    }

    fn requested(&self, watch: bool) -> Vec<String> {
        let requests = self.requests.lock().expect("no test panicked");
        requests
            .iter()
            .filter(|path| path.contains("watch=true") == watch)
            .cloned()
            .collect()
    }

    fn lease(&self, node: &str, holder: &str) -> u64 {
        let stored = self.sandbox.put(json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": node, "namespace": crate::NAMESPACE},
            "spec": {"holderIdentity": holder},
        }));
        version_of(&stored)
    }

    fn node(&self, name: &str, cordoned: bool) {
        self.sandbox.put(json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "spec": {"unschedulable": cordoned},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }));
    }
}

fn version_of(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str();
    version
        .and_then(|version| version.parse().ok())
        .expect("a number")
}

fn answer(
    answer: Result<Response<sandbox::AnswerBody>, Infallible>,
    pieces: usize,
) -> Response<AnswerBody> {
    let Ok(answer) = answer;
    answer.map(|body| {
        let kept = BodyStream::new(body).map_err(Into::into).take(pieces);
        let end = futures::stream::iter((pieces != usize::MAX).then(|| {
            Err(BoxError::from(io::Error::from(
                io::ErrorKind::ConnectionReset,
            )))
        }));
        UnsyncBoxBody::new(StreamBody::new(kept.chain(end)))
    })
}

fn refusal(code: StatusCode) -> Response<AnswerBody> {
    let status = json!({"kind": "Status", "message": "not now", "code": code.as_u16()});
    let body = Full::new(Bytes::from(status.to_string()));
    let body = http_body_util::BodyExt::map_err(body, |never| match never {});
    let mut refusal = Response::new(UnsyncBoxBody::new(body));
    *refusal.status_mut() = code;
    refusal
}

/// An event in words, such as `changed a: alice`.
fn words(event: Option<Result<LeaseEvent, Error>>) -> String {
    let lease =
        |lease: &NodeLease| format!("{}: {}", lease.node(), lease.holder().unwrap_or("nobody"));
    match event.expect("a watch does not end") {
        Err(error) => format!("error: {error}"),
        Ok(WatchEvent::Changed(changed)) => format!("changed {}", lease(&changed)),
        Ok(WatchEvent::Deleted(deleted)) => format!("deleted {}", lease(&deleted)),
        Ok(WatchEvent::Listed(leases)) => {
            let mut listed: Vec<String> = leases.values().map(lease).collect();
            listed.sort();
            format!("listed {}", listed.join(", "))
        }
    }
}

#[tokio::test(start_paused = true)]
async fn changes_follow_the_list() {
    let fixture = Fixture::new();
    fixture.lease("a", "alice");
    let mut events = fixture.maintenance().api.watch_leases(None, None);
    assert_eq!(words(events.next().await), "listed a: alice");
    fixture.lease("a", "bob");
    fixture.lease("b", "carol");
    fixture
        .sandbox
        .remove("coordination.k8s.io/v1", "Lease", crate::NAMESPACE, "a");
    assert_eq!(words(events.next().await), "changed a: bob");
    assert_eq!(words(events.next().await), "changed b: carol");
    assert_eq!(words(events.next().await), "deleted a: bob");
}

#[tokio::test(start_paused = true)]
async fn one_node_is_watched_alone() {
    let fixture = Fixture::new();
    fixture.lease("b", "bob");
    let mut events = fixture.maintenance().api.watch_leases(Some("a"), None);
    assert_eq!(words(events.next().await), "listed ");
    fixture.lease("b", "carol");
    fixture.lease("a", "alice");
    assert_eq!(words(events.next().await), "changed a: alice");
}

#[tokio::test(start_paused = true)]
async fn a_watch_can_begin_at_a_known_version() {
    let fixture = Fixture::new();
    let seen = fixture.lease("a", "alice");
    fixture.lease("a", "bob");
    let mut events = fixture
        .maintenance()
        .api
        .watch_leases(Some("a"), Some(seen));
    assert_eq!(words(events.next().await), "changed a: bob");
    assert_eq!(fixture.lists(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_is_resumed_without_another_list() {
    let fixture = Fixture::new();
    fixture.lease("a", "alice");
    let mut events = fixture.maintenance().api.watch_leases(None, None);
    events.next().await;
    let (event, ()) = futures::join!(events.next(), async {
        tokio::time::sleep(Duration::from_secs(1000)).await;
        fixture.lease("a", "bob");
    });
    assert_eq!(words(event), "changed a: bob");
    assert_eq!(fixture.lists().len(), 1);
    assert_eq!(fixture.watches().len(), 4, "290 s each");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_cut_goes_on_after_its_last_event() {
    let fixture = Fixture::new();
    let mut events = fixture
        .maintenance_where(|number, _| match number {
            1 => Fate::CutAfter(1),
            _ => Fate::Pass,
        })
        .api
        .watch_leases(None, None);
    events.next().await;
    let first = fixture.lease("a", "alice");
    fixture.lease("a", "bob");
    assert_eq!(words(events.next().await), "changed a: alice");
    assert_eq!(words(events.next().await), "changed a: bob");
    let resumed = format!("resourceVersion={first}");
    assert!(
        fixture.watches()[1].ends_with(&resumed),
        "{:?}",
        fixture.watches()
    );
    assert_eq!(fixture.lists().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_too_old_lists_again() {
    let fixture = Fixture::new();
    fixture.lease("a", "alice");
    let mut events = fixture.maintenance().api.watch_leases(None, None);
    events.next().await;
    fixture.lease("b", "bob");
    fixture.sandbox.compact();
    assert_eq!(words(events.next().await), "listed a: alice, b: bob");
    fixture.lease("b", "carol");
    assert_eq!(words(events.next().await), "changed b: carol");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_refused_as_too_old_lists_again() {
    let fixture = Fixture::new();
    let mut events = fixture
        .maintenance_where(|number, _| match number {
            1 => Fate::Refused(StatusCode::GONE),
            _ => Fate::Pass,
        })
        .api
        .watch_leases(None, None);
    assert_eq!(words(events.next().await), "listed ");
    assert_eq!(words(events.next().await), "listed ");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_an_error_each_time_and_nothing_is_missed() {
    let fixture = Fixture::new();
    let mut events = fixture
        .maintenance_where(|number, _| match number {
            0 | 2 | 3 => Fate::Refused(StatusCode::SERVICE_UNAVAILABLE),
            _ => Fate::Pass,
        })
        .api
        .watch_leases(None, None);
    let away = "error: Error from server (ServiceUnavailable): not now";
    assert_eq!(words(events.next().await), away);
    assert_eq!(words(events.next().await), "listed ");
    fixture.lease("a", "alice");
    assert_eq!(words(events.next().await), away);
    assert_eq!(words(events.next().await), away);
    assert_eq!(words(events.next().await), "changed a: alice");
}

#[tokio::test(start_paused = true)]
async fn a_missing_right_is_named() {
    let fixture = Fixture::new();
    let mut events = fixture
        .maintenance_where(|_, path| match path.contains("watch=true") {
            true => Fate::Refused(StatusCode::FORBIDDEN),
            false => Fate::Pass,
        })
        .api
        .watch_leases(None, None);
    events.next().await;
    let Some(Err(Error::MissingRight { right, .. })) = events.next().await else {
        panic!("it is forbidden");
    };
    assert_eq!(right, Right::on_leases("watch", &Repository::default()));
}

/// A keeper goes on without a watch for days.
#[tokio::test(start_paused = true)]
async fn without_the_right_to_watch_it_reads_about_once_a_minute() {
    let fixture = Fixture::new();
    let mut events = fixture
        .maintenance_where(|_, _| Fate::Refused(StatusCode::FORBIDDEN))
        .api
        .watch_leases(Some("a"), Some(1));
    let hour = tokio::time::sleep(Duration::from_secs(3600));
    let errors = events.by_ref().take_until(hour).count().await;
    assert!(errors <= 130, "{errors} in an hour");
}

#[tokio::test(start_paused = true)]
async fn a_shared_watch_remembers_no_lease_that_nobody_follows() {
    let fixture = Fixture::new();
    let maintenance = fixture.maintenance();
    let follow = |node, from| maintenance.followers.follow(&maintenance.api, node, from);
    let from = fixture.lease("kept", "alice");
    let mut followed: Vec<_> = (0..9).map(|_| follow("kept", from)).collect();
    let mut shared = followed.pop().expect("more than may watch alone");
    for number in 0..5000 {
        fixture.lease(&format!("others-{number}"), "bob");
    }
    fixture.lease("kept", "carol");
    assert_eq!(words(shared.next().await), "changed kept: carol");
    let remembered = maintenance.followers.remembered();
    assert!(remembered < 2000, "{remembered}");
    // What came before one that follows only now is not missed.
    let mut late = follow("others-7", from);
    assert_eq!(words(late.next().await), "changed others-7: bob");
}

#[tokio::test(start_paused = true)]
async fn rows_of_nodes_are_followed_past_bookmarks() {
    let fixture = Fixture::new();
    let mut events = fixture
        .maintenance()
        .watch_nodes(None, None, RowDetail::Cells);
    let Some(Ok(WatchEvent::Listed(rows))) = events.next().await else {
        panic!("a list comes first");
    };
    assert!(rows.is_empty());
    let (event, ()) = futures::join!(events.next(), async {
        // Long enough for a bookmark, which has a row of nothing.
        tokio::time::sleep(Duration::from_secs(100)).await;
        fixture.node("a", false);
    });
    let changed = |event: Option<Result<NodeRowEvent, Error>>| match event {
        Some(Ok(WatchEvent::Changed(row))) => (row.name, row.status),
        other => panic!("{other:?}"),
    };
    assert_eq!(changed(event), ("a".into(), "Ready".into()));
    fixture.node("a", true);
    let cordoned = ("a".into(), "Ready,SchedulingDisabled".into());
    assert_eq!(changed(events.next().await), cordoned);
    fixture.sandbox.remove("v1", "Node", "", "a");
    let event = events.next().await;
    assert!(matches!(event, Some(Ok(WatchEvent::Deleted(row))) if row.name == "a"));
}

#[tokio::test]
async fn lines_are_complete_for_any_chunk_size() {
    let text = b"one\n\ntwo and \xc3\xbc\nleft off";
    for size in [1, 2, 3, 100] {
        let pieces = text
            .chunks(size)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)));
        let lines: Vec<Vec<u8>> = lines(futures::stream::iter(pieces))
            .try_collect()
            .await
            .expect("no piece is an error");
        assert_eq!(
            lines,
            [&b"one"[..], b"", b"two and \xc3\xbc"],
            "pieces of {size}"
        );
    }
}
