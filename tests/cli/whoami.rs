//! `whoami`: the caller's identity as a holder, and as a user of the API server.

use insta::assert_snapshot;

use crate::support::Treatment::{As, Foreign};
use crate::support::{holder_of, in_memory, on_both, requests};

#[test]
fn the_holder_and_the_api_user_are_shown() {
    on_both("whoami", |cluster| {
        let run = cluster.maint(["whoami"]).succeeds();
        let lines: Vec<&str> = run.stdout.lines().collect();
        assert_eq!(
            lines[..2],
            [
                "Holder:    alice@bastion",
                "From:      the variable KUBECTL_MAINT_HOLDER"
            ]
        );
        let user = lines[2].strip_prefix("API user:  ").expect("a user");
        let expected = cluster.real.map_or("system:unsecured", |_| "admin");
        assert_eq!(user, expected);
        assert!(lines[3].contains("system:masters"), "{lines:?}");

        let json = cluster.maint(["whoami", "-o", "json"]).succeeds();
        let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
        assert_eq!(json["holder"], "alice@bastion");
        assert_eq!(json["isDefault"], false);
        assert_eq!(json["apiUser"], user);
        // One request is enough.
        assert_eq!(requests(&cluster.maint(["whoami", "-v6"]).run()), ["POST"]);

        assert_snapshot!(cluster.maint(["whoami", "--as", "bob"]).run(), @"
        $ kubectl maint whoami --as bob
        Holder:    alice@bastion
        From:      the variable KUBECTL_MAINT_HOLDER
        API user:  bob
        Groups:    system:authenticated
        -- exit code 0
        ");
        let by_flag = cluster.maint(["whoami", "--holder", "job-7"]).succeeds();
        assert!(
            by_flag.stdout.contains("From:      --holder\n"),
            "{by_flag}"
        );
        let default = cluster
            .maint(["whoami"])
            .without_env("KUBECTL_MAINT_HOLDER");
        let default = default.succeeds();
        assert!(
            default.stdout.contains("From:      the default: your "),
            "{default}"
        );
        assert_snapshot!(cluster.maint(["whoami", "-o", "lock-id"]).run(), @"
        $ kubectl maint whoami -o lock-id
        -- stderr
        error: invalid value 'lock-id' for '--output <FORMAT>': use wide, name, json, yaml, jsonpath= or custom-columns=
        hint: see `kubectl maint whoami --help`
        -- exit code 2
        ");
    });
}

/// `kubectl proxy` serves plain HTTP and adds the credentials of the user who started it.
#[test]
fn the_holder_is_the_one_that_acquires_also_behind_kubectl_proxy() {
    in_memory("whoami-plain", |cluster| {
        let node = cluster.node("worker-1");
        let proxy = cluster.proxy(|_, _| As("alice"));
        let by_default = |line: &[&str]| {
            let maint = cluster.maint(line).kubeconfig(&proxy.kubeconfig);
            maint.env("USER", "al").without_env("KUBECTL_MAINT_HOLDER")
        };
        let json = by_default(&["whoami", "-o", "json"]).succeeds().stdout;
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["apiUser"], "alice");
        let holder = json["holder"].as_str().expect("a holder");
        by_default(&["acquire", &node]).succeeds();
        assert_eq!(Some(holder), holder_of(cluster, &node).as_deref());
        let doctor = by_default(&["doctor"]).run();
        assert!(doctor.stdout.contains(holder), "{doctor}");
    });
}

#[test]
fn the_holder_is_shown_even_without_an_answer() {
    let nowhere = crate::support::Cluster::nowhere();
    assert_snapshot!(nowhere.maint(["whoami"]).run(), @"
    $ kubectl maint whoami
    Holder:    alice@bastion
    From:      the variable KUBECTL_MAINT_HOLDER
    API user:  unknown
    -- stderr
    The connection to the server [server] was refused - did you specify the right host or port?
    -- exit code 1
    ");
}

#[test]
fn an_api_server_that_cannot_say_who_you_are_is_named_as_the_cause() {
    in_memory("whoami-old", |cluster| {
        let proxy = cluster.proxy_for(Foreign(404), |_, path| path.contains("selfsubjectreviews"));
        let run = cluster.maint(["whoami"]).kubeconfig(&proxy.kubeconfig);
        assert_snapshot!(run.run(), @"
        $ kubectl maint whoami
        Holder:    alice@bastion
        From:      the variable KUBECTL_MAINT_HOLDER
        API user:  unknown
        -- stderr
        error: the API server cannot say who you are: that needs Kubernetes 1.28 or newer
        -- exit code 1
        ");
    });
}
