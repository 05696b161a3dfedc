//! Data that a user may not read, or that the server does not return: it must be confirmed, and never counts as
//! healthy.

use control_plane::Rule;
use serde_json::json;

use crate::fixture::fixture;
use crate::support::Treatment;

#[test]
fn a_job_is_known_only_to_users_who_may_read_it() {
    fixture("promise", |fixture| {
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "import"},
            "spec": {"podReplacementPolicy": "Failed", "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "main", "image": "registry.example/job:1"}],
                },
            }},
        });
        let jobs = fixture.at("/apis/batch/v1", "jobs");
        let job = fixture.cluster.create(&jobs, &job);
        fixture.ended_pod("import-1", Some(&job), &json!({}));
        let pods = Rule::new("", &["pods"], &["get", "delete"]);
        let jobs = Rule::new("batch", &["jobs"], &["list"]);
        let blind = fixture.user("blind", std::slice::from_ref(&pods));
        let seeing = fixture.user("seeing", &[pods, jobs]);
        let levels = fixture.levels_for(&blind, "import-1");
        levels.are(&[("owner", Some("Unread")), ("no-owner", None)]);
        let words = levels.words("owner");
        assert!(words.contains("no permission to list jobs"), "{words}");
        let flag = levels.confirm();
        assert!(flag.contains("unread"), "{flag}");
        let levels = fixture.levels_for(&seeing, "import-1");
        levels.are(&[("owner", Some("Risk"))]);
    });
}

#[test]
fn rights_that_the_server_does_not_list_are_unknown() {
    fixture("untold", |fixture| {
        fixture.harmless_pod("web-1");
        for (status, why) in [
            (503, "ServiceUnavailable"),
            (403, "no permission to create"),
        ] {
            let proxy = fixture
                .cluster
                .proxy_for(Treatment::Answer(status, None), |_, path| {
                    path.contains("/selfsubjectaccessreviews")
                });
            let levels = fixture.levels_for(&proxy.kubeconfig, "web-1");
            levels.are(&[("rights", Some("Unread"))]);
            let words = levels.words("rights");
            assert!(words.contains(why), "{words}");
            let words = ["--accept-risk=none", "-m", "why"];
            let run = fixture
                .force_delete("web-1", &words)
                .kubeconfig(&proxy.kubeconfig)
                .run();
            assert_eq!(run.code, 6, "{run}");
            assert!(run.stderr.contains("risks not accepted: unread"), "{run}");
        }
        assert!(fixture.is_there("web-1"));
    });
}
