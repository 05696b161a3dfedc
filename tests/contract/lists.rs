//! LIST: selectors, pages and resource versions.

use serde_json::json;

use crate::api::Api;
use crate::compare::agree;

async fn leases(api: &Api, namespace: &str) -> String {
    let leases = api.namespace(namespace).await;
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red"), ("d", "green")] {
        let metadata = json!({"name": name, "labels": {"color": color}});
        api.post(&leases, json!({ "metadata": metadata }))
            .await
            .is(201);
    }
    leases
}

#[test]
fn labels_select() {
    agree(async |api| {
        let leases = leases(api, "list-labels").await;
        for (selector, expected) in [
            ("color=red", vec!["a", "c"]),
            ("color%21%3Dred", vec!["b", "d"]),
            ("color+in+(red,blue)", vec!["a", "b", "c"]),
            ("color+notin+(red)", vec!["b", "d"]),
            ("color", vec!["a", "b", "c", "d"]),
            ("%21color", vec![]),
            ("color=red,color=blue", vec![]),
        ] {
            let path = format!("{leases}?labelSelector={selector}");
            assert_eq!(api.get(&path).await.is(200).names(), expected, "{selector}");
        }
        api.get(&format!("{leases}?labelSelector=a%3D%3D%3Db"))
            .await
            .refused(400, "BadRequest");
    });
}

#[test]
fn fields_select_by_name_and_namespace_only() {
    agree(async |api| {
        let leases = leases(api, "list-fields").await;
        for (selector, expected) in [
            ("metadata.name%3Db", vec!["b"]),
            ("metadata.name%21%3Db", vec!["a", "c", "d"]),
            (
                "metadata.namespace%3Dlist-fields,metadata.name%3Da",
                vec!["a"],
            ),
            ("metadata.namespace%3Dother", vec![]),
        ] {
            let path = format!("{leases}?fieldSelector={selector}");
            assert_eq!(api.get(&path).await.is(200).names(), expected, "{selector}");
        }
        let everywhere =
            "/apis/coordination.k8s.io/v1/leases?fieldSelector=metadata.namespace%3Dlist-fields";
        assert_eq!(api.get(everywhere).await.names(), ["a", "b", "c", "d"]);
        for unknown in ["spec.holderIdentity%3Da", "status.phase%3DActive"] {
            api.get(&format!("{leases}?fieldSelector={unknown}"))
                .await
                .refused(400, "BadRequest");
        }
        for unknown in ["nodes", "namespaces", "pods", "events"] {
            api.get(&format!("/api/v1/{unknown}?fieldSelector=spec.color%3Dred"))
                .await
                .refused(400, "BadRequest");
        }
    });
}

#[test]
fn the_next_page_begins_after_the_last() {
    agree(async |api| {
        let leases = leases(api, "list-pages").await;
        let first = api.get(&format!("{leases}?limit=3")).await.is(200);
        assert_eq!(first.names(), ["a", "b", "c"]);
        let token = first.text("/metadata/continue");
        api.delete(&format!("{leases}/d")).await.is(200);
        let second = api
            .peek(&format!("{leases}?limit=3&continue={token}"))
            .await
            .is(200);
        assert_eq!(
            second.names(),
            ["d"],
            "as it was when the first page was made"
        );
        let selected = api
            .get(&format!("{leases}?limit=1&labelSelector=color%3Dred"))
            .await;
        assert_eq!(selected.names(), ["a"]);
        api.get(&format!("{leases}?limit=3")).await.is(200);
        api.get(&format!("{leases}?limit=0")).await.is(200);
        api.get(&format!("{leases}?continue=nonsense"))
            .await
            .refused(400, "BadRequest");
        api.get(&format!("{leases}?limit=many"))
            .await
            .refused(400, "BadRequest");
    });
}

#[test]
fn any_version_may_be_read_but_not_one_of_the_future() {
    agree(async |api| {
        let leases = leases(api, "list-versions").await;
        let path = format!("{leases}/a");
        let version = api.get(&path).await.version();
        api.get(&format!("{leases}?resourceVersion=0"))
            .await
            .is(200);
        api.get(&format!("{path}?resourceVersion=0")).await.is(200);
        api.get(&format!("{path}?resourceVersion={version}"))
            .await
            .is(200);
        api.get(&format!("{leases}?resourceVersion={version}"))
            .await
            .is(200);
        api.get(&format!("{leases}?resourceVersion=nonsense"))
            .await
            .refused(400, "BadRequest");
        api.delete(&format!("{leases}/d")).await.is(200);
        let exact = format!("{leases}?resourceVersion={version}&resourceVersionMatch=Exact");
        assert_eq!(api.get(&exact).await.is(200).names(), ["a"]);
        api.get(&format!("{leases}?resourceVersionMatch=Exact"))
            .await
            .refused(422, "Invalid");
    });
}

#[test]
fn missing_objects_are_not_found() {
    agree(async |api| {
        api.get("/api/v1/nodes/list-nowhere")
            .await
            .refused(404, "NotFound");
        api.get("/api/v1/colors").await.refused(404, "NotFound");
        api.get("/apis/coordination.k8s.io/v1/colors")
            .await
            .refused(404, "NotFound");
        api.get("/apis/example.com/v1/colors").await.is(404);
        api.get("/apis/coordination.k8s.io/v9/leases").await.is(404);
        api.get("/nowhere").await.is(404);
        api.get_as("application/xml", "/api/v1/nodes/list-nowhere")
            .await
            .is(406);
        api.get("/readyz").await.is(200);
    });
}

#[test]
fn everybody_with_all_rights_may_do_everything() {
    agree(async |api| {
        let attributes = json!({"verb": "patch", "resource": "leases", "namespace": "default"});
        let body = json!({"spec": {"resourceAttributes": attributes}});
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        api.post(path, body)
            .await
            .is(201)
            .has("/status/allowed", true);
    });
}

#[test]
fn lists_of_volumes_may_be_empty() {
    agree(async |api| {
        for path in [
            "/api/v1/persistentvolumes",
            "/api/v1/namespaces/default/persistentvolumeclaims",
            "/apis/storage.k8s.io/v1/volumeattachments",
            "/apis/storage.k8s.io/v1/csidrivers",
        ] {
            let list = api.get(path).await.is(200);
            assert_eq!(list.names(), Vec::<&str>::new(), "{path}");
        }
        api.get("/apis/storage.k8s.io/v1/volumeattachments/none")
            .await
            .refused(404, "NotFound");
    });
}
