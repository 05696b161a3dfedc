//! Reads are retried if the connection breaks or the server is busy. Writes are not.

use std::time::Duration;

use http::{Method, StatusCode};
use maintenance_lease::{ApiError, Error, LeaseScope, Maintenance, NodeEvent, RowDetail};

use crate::on_both_servers;
use crate::support::{Cluster, Fate, Wire};

on_both_servers! {
    a_read_whose_connection_breaks_is_sent_again,
    a_read_whose_answer_breaks_off_is_sent_again,
    a_throttled_read_waits_as_long_as_the_server_asks,
    unanswered_requests_are_sent_six_times,
    a_server_that_asks_to_wait_beyond_the_time_limit_gets_one_request,
    a_write_is_sent_once,
}

/// A wire that applies this fate to the first `count` requests.
fn first(count: usize, fate: fn() -> Fate) -> Wire {
    let mut left = count;
    Wire::planned(move |_| match left {
        0 => Fate::Pass,
        _ => {
            left -= 1;
            fate()
        }
    })
}

async fn all_reads(alice: &Maintenance, node: &str) {
    assert!(alice.get(node).await.unwrap().is_some());
    assert!(alice.list().await.unwrap().contains_key(node));
    assert!(alice.node(node).await.unwrap().row().is_some());
    let rows = alice.nodes(None, RowDetail::Cells).await.unwrap();
    assert_eq!(rows.iter().filter(|row| row.name == node).count(), 1);
    let all = alice.any_leases(LeaseScope::Everywhere).await.unwrap();
    let named = all.iter().filter(|any| any.lease.node() == node);
    assert_eq!(named.count(), 1);
    alice.server_version().await.unwrap();
}

async fn a_read_whose_connection_breaks_is_sent_again(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, serde_json::json!({})).await;
    let mut breaks = false;
    let wire = Wire::planned(move |_| {
        breaks = !breaks;
        match breaks {
            true => Fate::Reset,
            false => Fate::Pass,
        }
    });
    all_reads(&cluster.holder_on(&wire, "alice"), &node).await;
    assert_eq!(wire.passed().len(), 12, "each of them twice");
}

async fn a_read_whose_answer_breaks_off_is_sent_again(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, serde_json::json!({})).await;
    let mut breaks = false;
    let wire = Wire::planned(move |_| {
        breaks = !breaks;
        match breaks {
            // The answer contains the last object of a list, but not the end of the list.
            true => Fate::CutShort(|body| body.len() - 2),
            false => Fate::Pass,
        }
    });
    all_reads(&cluster.holder_on(&wire, "alice"), &node).await;
    assert_eq!(wire.passed().len(), 12, "each of them twice");
}

async fn a_throttled_read_waits_as_long_as_the_server_asks(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, serde_json::json!({})).await;
    for code in [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
    ] {
        let mut refused = false;
        let wire = Wire::planned(move |_| match std::mem::replace(&mut refused, true) {
            false => Fate::Refused(code, Some(2)),
            true => Fate::Pass,
        });
        let alice = cluster.holder_on(&wire, "alice");
        assert!(alice.get(&node).await.unwrap().is_some());
        let at: Vec<_> = wire.passed().iter().map(|passing| passing.at).collect();
        let [first, second] = at[..] else {
            panic!("{at:?}");
        };
        assert!(second.since(first).to_duration() >= Duration::from_secs(2));
    }
}

async fn unanswered_requests_are_sent_six_times(cluster: Cluster) {
    let wire = Wire::planned(|_| Fate::Reset);
    let alice = cluster.builder_on(&wire, "alice").request_timeout(None);
    let failed = alice.build().unwrap().get("n").await.unwrap_err();
    assert!(matches!(failed, Error::Api(ApiError::Transport(_))));
    assert_eq!(wire.passed().len(), 6);
    // Without a `Retry-After` header, only 429 is retried.
    for (code, sent) in [
        (StatusCode::TOO_MANY_REQUESTS, 11),
        (StatusCode::SERVICE_UNAVAILABLE, 1),
        (StatusCode::NOT_FOUND, 1),
    ] {
        let wire = Wire::planned(move |_| Fate::Refused(code, None));
        let alice = cluster.builder_on(&wire, "alice").request_timeout(None);
        alice.build().unwrap().get("n").await.unwrap_err();
        assert_eq!(wire.passed().len(), sent, "{code}");
    }
}

async fn a_server_that_asks_to_wait_beyond_the_time_limit_gets_one_request(cluster: Cluster) {
    let limit = Duration::from_secs(5);
    for (limit, requested) in [(Some(limit), 5), (Some(limit), 60), (None, 61)] {
        let wire = first(
            1,
            match requested {
                5 => || Fate::Refused(StatusCode::TOO_MANY_REQUESTS, Some(5)),
                60 => || Fate::Refused(StatusCode::TOO_MANY_REQUESTS, Some(60)),
                _ => || Fate::Refused(StatusCode::TOO_MANY_REQUESTS, Some(61)),
            },
        );
        let alice = cluster.builder_on(&wire, "alice").request_timeout(limit);
        let failed = alice.build().unwrap().get("n").await.unwrap_err();
        let Error::Api(failed) = failed else {
            panic!("{failed}");
        };
        assert!(failed.is_throttled(), "{failed}");
        assert_eq!(wire.passed().len(), 1, "{limit:?} {requested}");
    }
}

async fn a_write_is_sent_once(cluster: Cluster) {
    let event = NodeEvent {
        node: cluster.node("n").await,
        uid: "of-the-node".to_owned(),
        reason: "MaintenanceHold",
        message: "a disk".to_owned(),
        warning: false,
    };
    for fate in [
        || Fate::Reset,
        || Fate::Refused(StatusCode::TOO_MANY_REQUESTS, Some(1)),
    ] {
        let wire = first(usize::MAX, fate);
        let alice = cluster.holder_on(&wire, "alice");
        let events = std::slice::from_ref(&event);
        let failed = alice.post_events(events, Duration::from_secs(60)).await;
        assert!(failed.is_some());
        let sent = wire.passed();
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0].method, Method::POST);
    }
}
