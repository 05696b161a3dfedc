//! Answers that are not the API server's, and answers that are cut short: nothing must be concluded from them.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use http::{Method, Response, header};
use kube::client::Body;
use maintenance_lease::{
    Accept, Acquire, ApiError, Call, Done, Error, Followed, Guarded, LeaseScope, Maintenance,
    NodeLookup, Release, Requests, RowDetail, SideEffect,
};
use serde_json::json;

use crate::on_both_servers;
use crate::support::{Cluster, Fate, Wire};

on_both_servers! {
    no_read_takes_a_foreign_answer_for_the_servers,
    no_read_takes_the_beginning_of_an_answer_for_all_of_it,
    a_watch_lists_again_after_a_list_that_was_cut_short,
    a_404_page_does_not_make_a_keeper_lose_its_lease,
    a_404_page_does_not_end_a_release_that_was_lost,
    a_foreign_answer_leaves_a_write_unknown,
    missing_objects_are_distinguished,
}

/// Answers that an API server does not give to a request for a Lease or a Node: status code, content type and body.
const FOREIGN: [(u16, &str, &str); 14] = [
    (404, "text/plain; charset=utf-8", "404 page not found\n"),
    (404, "text/html", "<html>Not Found</html>"),
    (404, "application/json", r#"{"error":"no such route"}"#),
    (
        404,
        "application/json",
        r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"leases.coordination.k8s.io \"other\" not found","reason":"NotFound","details":{"name":"other","group":"coordination.k8s.io","kind":"leases"},"code":404}"#,
    ),
    (
        404,
        "application/json",
        r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}"#,
    ),
    (302, "text/html", "<a href=\"/login\">Found</a>"),
    (
        400,
        "text/plain",
        "Client sent an HTTP request to an HTTPS server.\n",
    ),
    (401, "text/html", "<html>Log in</html>"),
    (403, "application/json", r#"{"error":"blocked"}"#),
    (409, "text/plain", "Conflict"),
    (410, "text/plain", "Gone"),
    (422, "application/json", "{}"),
    (
        200,
        "application/json",
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}"#,
    ),
    (
        200,
        "application/json",
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"n"},"items":[],"rows":[]}"#,
    ),
];

fn answer((code, content_type, body): (u16, &'static str, &'static str)) -> Response<Body> {
    Response::builder()
        .status(code)
        .header(header::CONTENT_TYPE, content_type)
        .body(Body::from(body.as_bytes().to_vec()))
        .unwrap()
}

/// Calls everything that reads, and returns the results by name.
async fn reads(alice: &Maintenance, node: &str) -> Vec<(&'static str, Result<(), Error>)> {
    let mut watch = alice.follow_all();
    let mut nodes = alice.watch_nodes(None, None, RowDetail::Cells);
    vec![
        ("get", alice.get(node).await.map(drop)),
        ("list", alice.list().await.map(drop)),
        ("node", alice.node(node).await.map(drop)),
        ("read", alice.read(node, true).await.map(drop)),
        ("nodes", alice.nodes(None, RowDetail::Cells).await.map(drop)),
        (
            "nodes with metadata",
            alice.nodes(None, RowDetail::Metadata).await.map(drop),
        ),
        (
            "any_leases",
            alice.any_leases(LeaseScope::Everywhere).await.map(drop),
        ),
        (
            "follow_all",
            match watch.next().await {
                Ok(Followed::Unwatched(error)) => Err(error),
                followed => followed.map(drop),
            },
        ),
        (
            "watch_nodes",
            nodes.next().await.expect("an event").map(drop),
        ),
    ]
}

async fn no_read_takes_a_foreign_answer_for_the_servers(cluster: Cluster) {
    let node = cluster.node("n").await;
    for foreign in FOREIGN {
        let wire = Wire::planned(move |_| Fate::MetBy(answer(foreign)));
        let alice = cluster.holder_on(&wire, "alice");
        for (read, result) in reads(&alice, &node).await {
            assert!(
                matches!(result, Err(Error::Api(ApiError::NotKubernetes { code, .. })) if code == foreign.0),
                "{read} met {foreign:?}: {result:?}"
            );
        }
        // A server may not support these, and then answers with a 404 that names no object.
        let candidates = alice.candidates(None).await;
        match foreign.0 {
            404 => assert!(candidates.unwrap().is_empty(), "{foreign:?}"),
            _ => assert!(candidates.is_err(), "{foreign:?}"),
        }
    }
}

async fn no_read_takes_the_beginning_of_an_answer_for_all_of_it(cluster: Cluster) {
    let names = [cluster.node("n").await, cluster.node("m").await];
    for node in &names {
        let alice = cluster.holder("alice");
        alice.try_acquire(node, &Acquire::new()).await.unwrap();
    }
    let ends: [fn(&[u8]) -> usize; 4] = [
        |body| body.len() / 2,
        // Without the last byte of the outermost object.
        |body| body.trim_ascii_end().len() - 1,
        // After an element, or after a list.
        |body| position(body, b",").unwrap_or(1),
        |body| position(body, b"]").map_or(1, |end| end + 1),
    ];
    for (number, end) in ends.into_iter().enumerate() {
        let wire = Wire::planned(move |_| Fate::CutShort(end));
        let alice = cluster.holder_on(&wire, "alice");
        let reads = reads(&alice, &names[0]).await.into_iter();
        // There is no heartbeat to read.
        for (read, result) in reads.filter(|(read, _)| *read != "heartbeat") {
            assert!(
                matches!(result, Err(Error::Api(ApiError::CutShort { .. }))),
                "{read} cut at {number}: {result:?}"
            );
        }
    }
}

/// The position of the last `wanted` in `body`.
fn position(body: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut windows = body.windows(wanted.len());
    windows.rposition(|window| window == wanted)
}

async fn a_watch_lists_again_after_a_list_that_was_cut_short(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, json!({})).await;
    let mut lists = 0;
    let wire = Wire::planned(move |_| {
        lists += 1;
        match lists {
            1 => Fate::CutShort(|body| body.trim_ascii_end().len() - 1),
            _ => Fate::Pass,
        }
    });
    let alice = cluster.holder_on(&wire, "alice");
    let mut leases = alice.follow_all();
    let blind = leases.next().await.unwrap();
    assert!(matches!(blind, Followed::Unwatched(_)), "{blind:?}");
    loop {
        match leases.next().await.unwrap() {
            Followed::Changed(leases) if leases.contains_key(&node) => break,
            _ => {}
        }
    }
}

/// A wire on which the next `pages` requests about Leases get a 404 page. Watches are not affected.
fn with_404_pages(pages: &Arc<AtomicUsize>) -> Wire {
    let pages = pages.clone();
    Wire::planned(move |passing| {
        let is_meant = passing.path.contains("/leases") && !passing.is_watch();
        let one_less = |left: usize| left.checked_sub(1);
        let order = Ordering::SeqCst;
        match is_meant && pages.fetch_update(order, order, one_less).is_ok() {
            true => Fate::MetBy(answer(FOREIGN[0])),
            false => Fate::Pass,
        }
    })
}

async fn a_404_page_does_not_make_a_keeper_lose_its_lease(cluster: Cluster) {
    let node = cluster.node("n").await;
    let pages = Arc::new(AtomicUsize::new(0));
    let alice = cluster.holder_on(&with_404_pages(&pages), "alice");
    let options = Acquire::new().duration(Duration::from_secs(15));
    let held = alice.acquire(&node, &options).await.unwrap();
    // Both a renewal and the read that would follow a real 404 get the page.
    pages.store(2, Ordering::SeqCst);
    let before = held.held_state().deadline;
    let renewed = async {
        let mut now = held.held_state();
        while now.deadline <= before {
            now = held.changed(&now).await;
            if now.lost.is_some() {
                pending::<()>().await;
            }
        }
        Ok::<_, ()>(())
    };
    let guarded = held.guard(renewed).await;
    assert!(matches!(guarded, Guarded::Completed(())), "{guarded:?}");
    assert_eq!(pages.load(Ordering::SeqCst), 0);
    held.release().await.unwrap().expect("it was ours");
}

async fn a_404_page_does_not_end_a_release_that_was_lost(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = cluster.holder("alice");
    alice.try_acquire(&node, &Acquire::new()).await.unwrap();
    let mut passed = 0;
    let wire = Wire::planned(move |_| {
        passed += 1;
        match passed {
            // The first request reads the Lease. The write does not reach the server, and the next read gets the page.
            2 => Fate::Reset,
            3 => Fate::MetBy(answer(FOREIGN[0])),
            _ => Fate::Pass,
        }
    });
    let alice = cluster.holder_on(&wire, "alice");
    let change = alice.release(&node, &Release::new()).await.unwrap();
    assert_eq!(change.done, Done::Released);
    assert_eq!(cluster.lease(&node).await["spec"]["holderIdentity"], "");
}

async fn a_foreign_answer_leaves_a_write_unknown(cluster: Cluster) {
    for (number, foreign) in FOREIGN.into_iter().enumerate() {
        for lands in [true, false] {
            let node = cluster.node(&format!("n{number}-{lands}")).await;
            cluster.write_lease(&node, json!({})).await;
            let fate = match lands {
                true => Fate::AnsweredBy(answer(foreign)),
                false => Fate::MetBy(answer(foreign)),
            };
            let alice = cluster.holder_on(&Wire::first_write(fate), "alice");
            let change = alice.try_acquire(&node, &Acquire::new()).await;
            let change = change.unwrap_or_else(|error| panic!("{lands}, {foreign:?}: {error}"));
            assert_eq!(change.done, Done::Acquired);
            assert_eq!(
                change.side_effects.contains(&SideEffect::AnswerLost),
                lands,
                "{foreign:?}: {:?}",
                change.side_effects
            );
            let lease = cluster.lease(&node).await;
            assert_eq!(lease["spec"]["leaseTransitions"], 1, "{foreign:?}");
        }
    }
}

async fn missing_objects_are_distinguished(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, json!({})).await;
    let missing = cluster.name("missing");
    let requests = Requests::new(cluster.reconnected().await, None);
    let leases =
        |namespace: &str| format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
    let ours = leases(maintenance_lease::NAMESPACE);
    let call = |method, path: String, body: Option<(&'static str, &str)>| Call {
        method,
        path,
        accept: Accept::Json,
        body: body.map(|(content_type, body)| (content_type, body.as_bytes().to_vec())),
    };
    let patch = Some(("application/merge-patch+json", "{}"));
    let delete = Some(("application/json", "{}"));
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": missing},
    })
    .to_string();
    let lease = Some(("application/json", &*lease));
    let nowhere = leases("no-such-namespace");
    let row = Call::get(format!("/api/v1/nodes/{missing}"), Accept::Table);
    for (what, call) in [
        (
            "object",
            call(Method::GET, format!("{ours}/{missing}"), None),
        ),
        (
            "object",
            call(Method::PATCH, format!("{ours}/{missing}"), patch),
        ),
        (
            "object",
            call(Method::DELETE, format!("{ours}/{missing}"), delete),
        ),
        (
            "object",
            call(Method::GET, format!("{nowhere}/{missing}"), None),
        ),
        (
            "object",
            call(Method::PATCH, format!("{nowhere}/{missing}"), patch),
        ),
        ("object", row),
        ("namespace", call(Method::POST, nowhere, lease)),
        (
            "api",
            call(Method::GET, format!("/wrong{ours}/{node}"), None),
        ),
        (
            "api",
            call(Method::GET, "/apis/example.com/v1/things".into(), None),
        ),
        (
            "api",
            call(
                Method::GET,
                "/apis/coordination.k8s.io/v1/things".into(),
                None,
            ),
        ),
    ] {
        let error = requests.call(&call).await.unwrap_err();
        let told = (error.is_not_found(), error.is_not_installed());
        let expected = match what {
            "object" | "namespace" => (true, false),
            _ => (false, true),
        };
        assert_eq!(told, expected, "{} {}: {error:?}", call.method, call.path);
    }
    let alice = cluster.holder("alice");
    assert_eq!(alice.node(&missing).await.unwrap(), NodeLookup::Missing);
    assert!(alice.get(&missing).await.unwrap().is_none());
}
