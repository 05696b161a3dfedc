//! Watches: their events, the order of events, and where they begin.

use serde_json::{Value, json};

use crate::api::Api;
use crate::compare::agree;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

async fn leases(api: &Api, namespace: &str) -> String {
    let leases = api.namespace(namespace).await;
    for (name, holder) in [("a", "x"), ("b", "y")] {
        let body = json!({
            "metadata": {"name": name, "labels": {"holder": holder}},
            "spec": {"holderIdentity": holder},
        });
        api.post(&leases, body).await.is(201);
    }
    leases
}

/// The types and names of events.
fn summaries(events: &[Value]) -> Vec<String> {
    events
        .iter()
        .map(|event| {
            let name = event["object"]["metadata"]["name"].as_str();
            format!(
                "{} {}",
                event["type"].as_str().unwrap(),
                name.unwrap_or("-")
            )
        })
        .collect()
}

/// Changes the leases: `a` is patched twice, once without an effect; `b` is deleted; `c` is
/// created.
async fn change(api: &Api, leases: &str) {
    let a = format!("{leases}/a");
    let relabeled =
        json!({"metadata": {"labels": {"holder": "y"}}, "spec": {"holderIdentity": "y"}});
    api.patch(&a, relabeled).await.is(200);
    api.patch(&a, json!({"spec": {"holderIdentity": "y"}}))
        .await
        .is(200);
    api.delete(&format!("{leases}/b")).await.is(200);
    api.post(leases, json!({"metadata": {"name": "c"}}))
        .await
        .is(201);
}

#[test]
fn changes_come_in_order_from_any_version() {
    agree(async |api| {
        let leases = leases(api, "watch-order").await;
        let since = api.get(&format!("{leases}/b")).await.version();
        change(api, &leases).await;
        let path = format!("{leases}?watch=true&timeoutSeconds=1&resourceVersion={since}");
        let events = api.watch(&path).await;
        assert_eq!(summaries(&events), ["MODIFIED a", "DELETED b", "ADDED c"]);
    });
}

#[test]
fn changes_are_reported_when_they_happen() {
    agree(async |api| {
        let leases = leases(api, "watch-live").await;
        let since = api.get(&format!("{leases}/b")).await.version();
        let path = format!("{leases}?watch=true&timeoutSeconds=3&resourceVersion={since}");
        let (events, ()) = tokio::join!(api.watch(&path), change(api, &leases));
        assert_eq!(summaries(&events), ["MODIFIED a", "DELETED b", "ADDED c"]);
    });
}

#[test]
fn with_a_selector_changes_look_like_creations_and_deletions() {
    agree(async |api| {
        let leases = leases(api, "watch-select").await;
        let since = api.get(&format!("{leases}/b")).await.version();
        change(api, &leases).await;
        let path = format!("{leases}?watch=true&timeoutSeconds=1&resourceVersion={since}");
        let x = api.watch(&format!("{path}&labelSelector=holder%3Dx")).await;
        assert_eq!(summaries(&x), ["DELETED a"]);
        let y = api.watch(&format!("{path}&labelSelector=holder%3Dy")).await;
        assert_eq!(summaries(&y), ["ADDED a", "DELETED b"]);
        let one = api
            .watch(&format!("{path}&fieldSelector=metadata.name%3Dc"))
            .await;
        assert_eq!(summaries(&one), ["ADDED c"]);
    });
}

#[test]
fn without_a_version_a_watch_begins_with_existing_objects() {
    agree(async |api| {
        let leases = leases(api, "watch-initial").await;
        for version in ["", "&resourceVersion=0"] {
            let path = format!("{leases}?watch=true&timeoutSeconds=1{version}");
            assert_eq!(summaries(&api.watch(&path).await), ["ADDED a", "ADDED b"]);
        }
    });
}

#[test]
fn initial_events_end_with_a_bookmark_if_requested() {
    agree(async |api| {
        let leases = leases(api, "watch-list").await;
        let path = format!(
            "{leases}?watch=true&timeoutSeconds=1&sendInitialEvents=true\
             &resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        );
        let events = api.watch(&path).await;
        assert_eq!(
            summaries(&events[..3]),
            ["ADDED a", "ADDED b", "BOOKMARK -"]
        );
        let end = &events[2]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"];
        assert_eq!(end, "true");
    });
}

#[test]
fn tables_are_watched_row_by_row() {
    agree(async |api| {
        let leases = leases(api, "watch-table").await;
        let path = format!("{leases}?watch=true&timeoutSeconds=1&includeObject=Metadata");
        let events = api.watch_as(TABLE, &path).await;
        assert_eq!(events.len(), 2);
        assert!(events[0]["object"]["columnDefinitions"].is_array());
        assert!(events[1]["object"]["columnDefinitions"].is_null());
    });
}

#[test]
fn a_bookmarks_row_is_not_an_object() {
    agree(async |api| {
        let leases = leases(api, "watch-bookmark").await;
        let path = format!(
            "{leases}?watch=true&timeoutSeconds=1&includeObject=None&sendInitialEvents=true\
             &resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        );
        let events = api.watch_as(TABLE, &path).await;
        assert_eq!(events[2]["type"], "BOOKMARK");
        assert_eq!(events[2]["object"]["rows"][0]["cells"][0], "");
    });
}

#[test]
fn a_version_that_is_too_old_ends_a_watch_and_refuses_a_list() {
    agree(async |api| {
        api.compact().await;
        // The real server reads Events directly from etcd, without its cache.
        let events = "/api/v1/namespaces/default/events";
        let path = format!("{events}?watch=true&timeoutSeconds=1&resourceVersion=2");
        let answer = api.watch(&path).await;
        assert_eq!(answer.len(), 1);
        assert_eq!(answer[0]["type"], "ERROR");
        assert_eq!(answer[0]["object"]["code"], 410);
        assert_eq!(answer[0]["object"]["reason"], "Expired");
        api.get(&format!(
            "{events}?resourceVersion=2&resourceVersionMatch=Exact"
        ))
        .await
        .refused(410, "Expired");
    });
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    agree(async |api| {
        let leases = leases(api, "watch-options").await;
        for options in [
            "sendInitialEvents=true",
            "sendInitialEvents=true&resourceVersionMatch=Exact",
            "resourceVersionMatch=NotOlderThan",
        ] {
            api.get(&format!("{leases}?watch=true&timeoutSeconds=1&{options}"))
                .await
                .refused(422, "Invalid");
        }
        api.get(&format!("{leases}?sendInitialEvents=true"))
            .await
            .refused(422, "Invalid");
    });
}

#[test]
fn a_version_that_is_no_number_is_refused() {
    agree(async |api| {
        let leases = leases(api, "watch-nonsense").await;
        api.get(&format!("{leases}?watch=true&resourceVersion=nonsense"))
            .await
            .is(500);
    });
}
