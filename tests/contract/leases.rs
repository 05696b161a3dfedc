//! Leases: what the server accepts and refuses.

use serde_json::{Value, json};

use crate::api::{JSON_PATCH, STRATEGIC};
use crate::compare::agree;

fn lease(name: &str, spec: &Value) -> Value {
    json!({"metadata": {"name": name}, "spec": spec})
}

#[test]
fn a_lease_is_made_read_patched_replaced_and_deleted() {
    agree(async |api| {
        let leases = api.namespace("lease-life").await;
        let spec = json!({
            "holderIdentity": "a",
            "leaseDurationSeconds": 60,
            "leaseTransitions": 0,
            "acquireTime": "2026-01-02T03:04:05.123456Z",
            "renewTime": "2026-01-02T03:04:05.123456Z",
        });
        api.post(&leases, lease("n", &spec)).await.is(201);
        let path = format!("{leases}/n");
        let read = api.get(&path).await.is(200);
        api.patch(&path, json!({"spec": {"holderIdentity": "b"}}))
            .await
            .is(200)
            .has("/spec/holderIdentity", "b")
            .has("/spec/leaseDurationSeconds", 60);
        let mut replacement = api.get(&path).await.is(200).body;
        replacement["spec"] = json!({"holderIdentity": ""});
        api.put(&path, replacement)
            .await
            .is(200)
            .has("/spec", json!({"holderIdentity": ""}));
        api.delete(&path)
            .await
            .is(200)
            .has("/status", "Success")
            .has("/details/uid", read.uid());
        api.get(&path).await.refused(404, "NotFound");
        api.delete(&path).await.refused(404, "NotFound");
        api.patch(&path, json!({"spec": {"holderIdentity": "c"}}))
            .await
            .refused(404, "NotFound");
    });
}

#[test]
fn every_field_of_a_lease_is_optional() {
    agree(async |api| {
        let leases = api.namespace("lease-empty").await;
        api.post(&leases, json!({"metadata": {"name": "bare"}}))
            .await
            .is(201);
        api.post(&leases, lease("empty", &json!({}))).await.is(201);
        let nulls = json!({"holderIdentity": null, "leaseDurationSeconds": null});
        api.post(&leases, lease("nulls", &nulls)).await.is(201);
        let nobody = json!({"holderIdentity": ""});
        api.post(&leases, lease("nobody", &nobody)).await.is(201);
        for name in ["bare", "empty", "nulls", "nobody"] {
            api.get(&format!("{leases}/{name}")).await.is(200);
        }
        api.patch(
            &format!("{leases}/nobody"),
            json!({"spec": {"holderIdentity": null}}),
        )
        .await
        .is(200)
        .has("/spec", json!({}));
        api.patch(&format!("{leases}/nobody"), json!({"spec": null}))
            .await
            .is(200);
    });
}

#[test]
fn durations_are_positive_and_transitions_are_not_negative() {
    agree(async |api| {
        let leases = api.namespace("lease-numbers").await;
        for seconds in [0, -1] {
            api.post(
                &leases,
                lease("n", &json!({"leaseDurationSeconds": seconds})),
            )
            .await
            .refused(422, "Invalid")
            .because_of(&["spec.leaseDurationSeconds"]);
        }
        let both = json!({"leaseDurationSeconds": 0, "leaseTransitions": -1});
        api.post(&leases, lease("n", &both))
            .await
            .refused(422, "Invalid")
            .because_of(&["spec.leaseDurationSeconds", "spec.leaseTransitions"]);
        let largest =
            json!({"leaseDurationSeconds": 2_147_483_647, "leaseTransitions": 2_147_483_647});
        api.post(&leases, lease("n", &largest)).await.is(201);
        let path = format!("{leases}/n");
        for spec in [
            json!({"leaseDurationSeconds": 0}),
            json!({"leaseTransitions": -1}),
        ] {
            api.patch(&path, json!({"spec": spec}))
                .await
                .refused(422, "Invalid");
        }
        api.patch(
            &path,
            json!({"spec": {"leaseTransitions": 2_147_483_648_u32}}),
        )
        .await
        .refused(422, "Invalid")
        .because_of(&["patch"]);
        api.post(
            &leases,
            lease("m", &json!({"leaseTransitions": 2_147_483_648_u32})),
        )
        .await
        .refused(400, "BadRequest");
    });
}

#[test]
fn times_need_exactly_six_decimals() {
    agree(async |api| {
        let leases = api.namespace("lease-times").await;
        api.post(&leases, lease("n", &json!({}))).await.is(201);
        let path = format!("{leases}/n");
        let version = api.get(&path).await.version();
        for time in [
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.123Z",
            "2026-01-02T03:04:05.123456789Z",
            "2026-01-02 03:04:05.123456Z",
            "2026-13-02T03:04:05.123456Z",
            "yesterday",
            "",
        ] {
            let spec = json!({"renewTime": time});
            api.post(&leases, lease("m", &spec))
                .await
                .refused(400, "BadRequest");
            let mut body = lease("n", &spec);
            body["metadata"]["resourceVersion"] = version.clone().into();
            api.put(&path, body).await.refused(400, "BadRequest");
            api.patch(&path, json!({ "spec": spec }))
                .await
                .refused(422, "Invalid")
                .because_of(&["patch"]);
        }
        for time in [
            "2026-01-02T03:04:05.123456Z",
            "2026-01-02T03:04:05.000000Z",
            "2026-01-02T03:04:05.123456+05:30",
            "9999-12-31T23:59:59.999999Z",
        ] {
            api.patch(&path, json!({"spec": {"renewTime": time}}))
                .await
                .is(200);
        }
    });
}

#[test]
fn fields_of_the_wrong_type_are_refused() {
    agree(async |api| {
        let leases = api.namespace("lease-types").await;
        api.post(&leases, lease("n", &json!({}))).await.is(201);
        for spec in [
            json!({"holderIdentity": 5}),
            json!({"holderIdentity": ["a"]}),
            json!({"leaseDurationSeconds": "60"}),
            json!({"leaseDurationSeconds": 1.5}),
            json!({"leaseTransitions": true}),
            json!({"renewTime": 17}),
            json!({"renewTime": {}}),
            json!("text"),
            json!([]),
        ] {
            api.post(&leases, lease("m", &spec))
                .await
                .refused(400, "BadRequest");
            api.patch(&format!("{leases}/n"), json!({ "spec": spec }))
                .await
                .refused(422, "Invalid")
                .because_of(&["patch"]);
        }
    });
}

#[test]
fn coordinated_election_and_unknown_fields_are_dropped() {
    agree(async |api| {
        let leases = api.namespace("lease-unknown").await;
        let coordinated = json!({"strategy": "OldestEmulationVersion", "preferredHolder": "b"});
        api.post(&leases, lease("coordinated", &coordinated))
            .await
            .is(201)
            .has("/spec", json!({}));
        api.post(
            &leases,
            lease("preferred", &json!({"preferredHolder": "b"})),
        )
        .await
        .is(201)
        .has("/spec", json!({}));
        let mut unknown = lease("unknown", &json!({"holderIdentity": "a", "color": "red"}));
        unknown["extra"] = json!({"deep": 1});
        unknown["metadata"]["shape"] = "round".into();
        api.post(&leases, unknown.clone()).await.is(201);
        let path = format!("{leases}/unknown");
        api.patch(&path, json!({"spec": {"color": "blue"}}))
            .await
            .is(200);
        unknown["metadata"]["name"] = "strict".into();
        api.post(&format!("{leases}?fieldValidation=Strict"), unknown.clone())
            .await
            .refused(400, "BadRequest");
        api.post(&format!("{leases}?fieldValidation=Ignore"), unknown)
            .await
            .is(201);
        api.patch(
            &format!("{path}?fieldValidation=Strict"),
            json!({"spec": {"color": "blue"}}),
        )
        .await
        .refused(422, "Invalid");
    });
}

#[test]
fn a_lease_needs_its_namespace() {
    agree(async |api| {
        let leases = "/apis/coordination.k8s.io/v1/namespaces/lease-nowhere/leases";
        api.post(leases, lease("n", &json!({})))
            .await
            .refused(404, "NotFound");
        api.get(&format!("{leases}/n"))
            .await
            .refused(404, "NotFound");
        api.get(leases).await.is(200);
        api.patch(&format!("{leases}/n"), json!({"spec": {}}))
            .await
            .refused(404, "NotFound");
        api.delete(&format!("{leases}/n"))
            .await
            .refused(404, "NotFound");
        api.put(&format!("{leases}/n"), lease("n", &json!({})))
            .await
            .refused(404, "NotFound");
    });
}

#[test]
fn bodies_must_fit_the_path() {
    agree(async |api| {
        let leases = api.namespace("lease-bodies").await;
        api.post(&leases, lease("n", &json!({}))).await.is(201);
        api.post(&leases, lease("n", &json!({})))
            .await
            .refused(409, "AlreadyExists");
        let path = format!("{leases}/n");
        let mut elsewhere = lease("m", &json!({}));
        elsewhere["metadata"]["namespace"] = "default".into();
        api.post(&leases, elsewhere.clone())
            .await
            .refused(400, "BadRequest");
        elsewhere["metadata"]["name"] = "n".into();
        api.put(&path, elsewhere).await.refused(400, "BadRequest");
        api.put(&path, lease("other", &json!({})))
            .await
            .refused(400, "BadRequest");
        api.put(&path, json!({"spec": {}}))
            .await
            .refused(400, "BadRequest");
        let other_kind = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "m"}});
        api.post(&leases, other_kind)
            .await
            .refused(400, "BadRequest");
        let other_version = json!({
            "apiVersion": "coordination.k8s.io/v1beta1",
            "kind": "Lease",
            "metadata": {"name": "m"},
        });
        api.post(&leases, other_version)
            .await
            .refused(400, "BadRequest");
        api.post(&leases, json!({"metadata": {}}))
            .await
            .refused(422, "Invalid");
        api.patch(&path, json!({"metadata": {"name": "other"}}))
            .await
            .refused(400, "BadRequest");
        api.patch(&path, json!({"metadata": {"namespace": "default"}}))
            .await
            .refused(400, "BadRequest");
        api.patch(&path, json!([1]))
            .await
            .refused(400, "BadRequest");
        api.post(
            "/apis/coordination.k8s.io/v1/leases",
            lease("m", &json!({})),
        )
        .await
        .is(405);
        api.put(&leases, lease("m", &json!({})))
            .await
            .refused(405, "MethodNotAllowed");
        api.post(&path, lease("n", &json!({})))
            .await
            .refused(405, "MethodNotAllowed");
    });
}

#[test]
fn other_kinds_of_patches() {
    agree(async |api| {
        let leases = api.namespace("lease-patches").await;
        api.post(&leases, lease("n", &json!({"holderIdentity": "a"})))
            .await
            .is(201);
        let path = format!("{leases}/n");
        let replace = |from: &str, to: &str| {
            json!([
                {"op": "test", "path": "/spec/holderIdentity", "value": from},
                {"op": "replace", "path": "/spec/holderIdentity", "value": to},
            ])
        };
        api.patch_as(JSON_PATCH, &path, replace("a", "b"))
            .await
            .is(200)
            .has("/spec/holderIdentity", "b");
        api.patch_as(JSON_PATCH, &path, replace("a", "c"))
            .await
            .is(422);
        let labels = json!({"metadata": {"labels": {"x": "y"}}});
        api.patch_as(STRATEGIC, &path, labels).await.is(200);
        let cleared = json!({"metadata": {"labels": null}});
        api.patch_as(STRATEGIC, &path, cleared).await.is(200);
        api.patch_as("application/json", &path, json!({}))
            .await
            .refused(415, "UnsupportedMediaType");
    });
}
