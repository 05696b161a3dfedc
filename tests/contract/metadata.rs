//! Names, labels, annotations and owners: the rules that all types share.

use serde_json::{Value, json};

use crate::compare::agree;

#[test]
fn names_are_checked() {
    agree(async |api| {
        let leases = api.namespace("meta-names").await;
        for name in [
            "Upper",
            "under_score",
            "-dash",
            "dot.",
            "a..b",
            "sp ace",
            "a/b",
            "..",
        ] {
            api.post(&leases, json!({"metadata": {"name": name}}))
                .await
                .refused(422, "Invalid");
        }
        api.post(&leases, json!({"metadata": {"name": "a".repeat(254)}}))
            .await
            .refused(422, "Invalid");
        api.post(&leases, json!({"metadata": {"name": "node-1.example.com"}}))
            .await
            .is(201);
        for name in ["a.b", "Upper", &"a".repeat(64)] {
            api.post("/api/v1/namespaces", json!({"metadata": {"name": name}}))
                .await
                .refused(422, "Invalid");
        }
        let unnamed = json!({"metadata": {"generateName": "gen-"}});
        let first = api.post(&format!("{leases}?dryRun=All"), unnamed).await;
        assert_eq!(first.status, 201);
        let dotted = json!({"metadata": {"name": "named", "generateName": "gen."}});
        api.post(&leases, dotted)
            .await
            .refused(422, "Invalid")
            .because_of(&["metadata.generateName"]);
    });
}

#[test]
fn labels_and_annotations_are_checked() {
    agree(async |api| {
        let leases = api.namespace("meta-labels").await;
        for metadata in [
            json!({"labels": {"a b": "c"}}),
            json!({"labels": {"a": "b c"}}),
            json!({"labels": {"-a": "b"}}),
            json!({"labels": {"a/b/c": "d"}}),
            json!({"labels": {"/c": "d"}}),
            json!({"labels": {"Upper.com/c": "d"}}),
            json!({"labels": {"a": "b".repeat(64)}}),
            json!({"labels": {"a".repeat(64): "b"}}),
            json!({"labels": {"": "b"}}),
            json!({"annotations": {"a b": "c"}}),
            json!({"annotations": {"a": "b".repeat(262_144)}}),
            json!({"finalizers": ["no slash"]}),
            json!({"ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]}),
        ] {
            let mut metadata = metadata;
            metadata["name"] = "n".into();
            api.post(&leases, json!({ "metadata": metadata }))
                .await
                .refused(422, "Invalid");
        }
        let fine = json!({
            "name": "n",
            "labels": {"A.b-c_d": "E", "example.com/x": ""},
            "annotations": {"UPPER.example.com/x": "any text\nat all", "a": "b".repeat(262_000)},
        });
        api.post(&leases, json!({ "metadata": fine })).await.is(201);
        let path = format!("{leases}/n");
        api.patch(
            &path,
            json!({"metadata": {"annotations": {"b": "c".repeat(300)}}}),
        )
        .await
        .refused(422, "Invalid");
        api.patch(
            &path,
            json!({"metadata": {"annotations": null, "labels": null}}),
        )
        .await
        .is(200);
    });
}

#[test]
fn metadata_of_the_wrong_type_is_refused() {
    agree(async |api| {
        let leases = api.namespace("meta-types").await;
        for metadata in [
            json!({"name": "n", "labels": {"a": 1}}),
            json!({"name": "n", "annotations": {"a": true}}),
            json!({"name": "n", "labels": ["a"]}),
            json!({"name": "n", "labels": "a"}),
            json!({"name": 5}),
        ] {
            api.post(&leases, json!({ "metadata": metadata }))
                .await
                .refused(400, "BadRequest");
        }
        api.post(&leases, json!({"metadata": {"name": "n"}}))
            .await
            .is(201);
        let path = format!("{leases}/n");
        api.patch(&path, json!({"metadata": {"labels": {"a": 1}}}))
            .await
            .refused(422, "Invalid");
    });
}

#[test]
fn the_server_owns_some_metadata() {
    agree(async |api| {
        let leases = api.namespace("meta-owned").await;
        let forged = json!({
            "name": "n",
            "uid": "11111111-2222-3333-4444-555555555555",
            "creationTimestamp": "2020-01-01T00:00:00Z",
            "deletionTimestamp": "2020-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 5,
            "generation": 7,
            "selfLink": "/somewhere",
        });
        let made = api
            .post(&leases, json!({ "metadata": forged }))
            .await
            .is(201);
        assert_ne!(made.uid(), "11111111-2222-3333-4444-555555555555");
        let path = format!("{leases}/n");
        api.patch(
            &path,
            json!({"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}}),
        )
        .await
        .is(200);
        api.patch(&path, json!({"metadata": {"uid": null}}))
            .await
            .is(200);
        api.patch(
            &path,
            json!({"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}),
        )
        .await
        .refused(422, "Invalid");
        let versioned = json!({"metadata": {"name": "m", "resourceVersion": "5"}});
        api.post(&leases, versioned).await.is(500);
    });
}

#[test]
fn other_tools_metadata_survives_a_merge_patch() {
    agree(async |api| {
        let leases = api.namespace("meta-survives").await;
        let metadata = json!({
            "name": "n",
            "labels": {"a": "1", "b": "2"},
            "annotations": {"x.example.com/y": "z"},
            "finalizers": ["example.com/hold"],
        });
        api.post(&leases, json!({ "metadata": metadata }))
            .await
            .is(201);
        let path = format!("{leases}/n");
        api.patch(
            &path,
            json!({"metadata": {"labels": {"a": null, "c": "3"}}}),
        )
        .await
        .is(200)
        .has("/metadata/labels", json!({"b": "2", "c": "3"}))
        .has("/metadata/annotations/x.example.com~1y", "z");
        let freed = json!({"metadata": {"finalizers": Value::Null}});
        api.patch(&path, freed).await.is(200);
    });
}
