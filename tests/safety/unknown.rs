//! What a user may not read, or what does not answer: it has to be confirmed, and never counts as well.

use control_plane::Rule;
use serde_json::json;

use crate::scene::scene;
use crate::support::Treatment;

#[test]
fn what_a_job_promises_is_known_only_to_who_may_read_it() {
    scene("promise", |scene| {
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
        let jobs = scene.at("/apis/batch/v1", "jobs");
        let job = scene.cluster.create(&jobs, &job);
        scene.ended_pod("import-1", Some(&job), &json!({}));
        let pods = Rule::new("", &["pods"], &["get", "delete"]);
        let jobs = Rule::new("batch", &["jobs"], &["list"]);
        let blind = scene.user("blind", std::slice::from_ref(&pods));
        let seeing = scene.user("seeing", &[pods, jobs]);
        let levels = scene.levels_for(&blind, "import-1");
        levels.are(&[("owner", Some("Unread")), ("no-owner", None)]);
        let words = levels.words("owner");
        assert!(words.contains("no permission to list jobs"), "{words}");
        let flag = levels.confirm();
        assert!(flag.contains("unread"), "{flag}");
        let levels = scene.levels_for(&seeing, "import-1");
        levels.are(&[("owner", Some("Risk"))]);
    });
}

#[test]
fn rights_of_which_the_server_does_not_tell_are_unknown() {
    scene("untold", |scene| {
        scene.harmless_pod("web-1");
        for (status, why) in [
            (503, "ServiceUnavailable"),
            (403, "no permission to create"),
        ] {
            let proxy = scene
                .cluster
                .proxy_for(Treatment::Answer(status, None), |_, path| {
                    path.contains("/selfsubjectaccessreviews")
                });
            let levels = scene.levels_for(&proxy.kubeconfig, "web-1");
            levels.are(&[("rights", Some("Unread"))]);
            let words = levels.words("rights");
            assert!(words.contains(why), "{words}");
            let words = ["--accept-risk=none", "-m", "why"];
            let run = scene
                .force_delete("web-1", &words)
                .kubeconfig(&proxy.kubeconfig)
                .run();
            assert_eq!(run.code, 6, "{run}");
            assert!(run.stderr.contains("risks not accepted: unread"), "{run}");
        }
        assert!(scene.is_there("web-1"));
    });
}
