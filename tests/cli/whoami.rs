//! `whoami`: who the caller is, to others and to the API server.

use insta::assert_snapshot;

use crate::support::{on_both, requests};

#[test]
fn the_holder_and_the_api_user_are_shown() {
    on_both("whoami", |cluster| {
        let run = cluster.maint(["whoami"]).succeeds();
        let lines: Vec<&str> = run.stdout.lines().collect();
        assert_eq!(lines[0], "Holder:    alice@bastion");
        let user = lines[1].strip_prefix("API user:  ").expect("a user");
        assert!(
            ["system:unsecured", "kubernetes-admin"].contains(&user),
            "{user}"
        );
        assert!(lines[2].contains("system:masters"), "{lines:?}");

        let json = cluster.maint(["whoami", "-o", "json"]).succeeds();
        let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
        assert_eq!(json["holder"], "alice@bastion");
        assert_eq!(json["isDefault"], false);
        assert_eq!(json["apiUser"], user);
        // One request tells.
        assert_eq!(requests(&cluster.maint(["whoami", "-v6"]).run()), ["POST"]);

        assert_snapshot!(cluster.maint(["whoami", "--as", "bob"]).run(), @"");
        assert_snapshot!(cluster.maint(["whoami", "-o", "lock-id"]).run(), @"");
    });
}

#[test]
fn without_an_answer_the_holder_is_shown_all_the_same() {
    let nowhere = crate::support::Cluster::nowhere();
    assert_snapshot!(nowhere.maint(["whoami"]).run(), @"");
}
