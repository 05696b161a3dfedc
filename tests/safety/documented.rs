//! docs/pod-safety.md: a test on the real server expects every finding in its table of checks, and every other row and
//! rule has a test.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The levels as they are written in the table, in the report, and in its JSON.
const LEVELS: [(&str, &str, &str); 5] = [
    ("BLOCKER", "BLOCKER", "Blocker"),
    ("RISK", "RISK", "Risk"),
    ("`unread`", "unread", "Unread"),
    ("info", "info", "Info"),
    ("ok", "ok", "Ok"),
];

/// The rules of the page by their first words, each with a test that fails if the rule does not hold. Tests in `safety`
/// use a real API server. Tests in `fencing` also use the real controllers.
const RULES: [(&str, &str); 65] = [
    (
        "It says why a pod does not end",
        "safety::why::a_pod_of_an_unreachable_node_waits_for_its_kubelet",
    ),
    (
        "If it suggests `force-delete`",
        "safety::deletion::the_report_shows_the_risks_and_the_next_command",
    ),
    (
        "It says whether a PodDisruptionBudget",
        "safety::why::controllers::a_budget_is_explained_by_the_rules_of_the_eviction_api",
    ),
    (
        "If the pod has ended",
        "safety::why::on_a_live_node_the_kubelet_has_time_or_hangs",
    ),
    (
        "`kubectl delete pod`",
        "fencing::force_delete::a_bare_forced_deletion_is_believed_and_a_graceful_one_waits",
    ),
    (
        "`kubectl delete pod --force --grace-period=0`",
        "fencing::force_delete::a_bare_forced_deletion_is_believed_and_a_graceful_one_waits",
    ),
    (
        "`kubectl delete node`",
        "fencing::node_gone::pods_of_a_deleted_node_are_collected_and_replaced",
    ),
    (
        "taint `node.kubernetes.io/out-of-service`",
        "fencing::end_to_end::an_unreachable_node_is_fenced_and_its_pod_comes_back_elsewhere",
    ),
    (
        "`kubectl maint force-delete`",
        "fencing::force_delete::a_hanging_pod_is_replaced_once_its_deletion_was_confirmed",
    ),
    (
        "[`kubectl maint fence`]",
        "fencing::cost::pods_that_nothing_recreates_are_lost_only_with_consent",
    ),
    (
        "**BLOCKER**",
        "safety::overrides::pods_that_nobody_deleted_need_their_own_override",
    ),
    (
        "**RISK**",
        "safety::deletion::a_risk_that_is_not_named_is_not_accepted",
    ),
    ("**info**", "safety::checks::a_pod_without_risks"),
    (
        "`--accept-risk` and `--override` need",
        "safety::usage::invalid_arguments_are_refused",
    ),
    (
        "An id accepts everything in its line.",
        "safety::node::a_pod_that_arrives_after_the_report_goes_with_its_node",
    ),
    (
        "If you use `-l` together with ids",
        "safety::deletion::of_several_pods_all_or_none_go",
    ),
    (
        "Everything is checked again",
        "safety::races::a_new_risk_was_not_confirmed",
    ),
    (
        "`owner` is a RISK",
        "safety::checks::owners_keep_their_promises",
    ),
    (
        "`owner` is also a RISK for a pod of a Job that is ending",
        "safety::why::controllers::a_job_that_is_ending_waits_for_its_pod",
    ),
    (
        "`owner` is also a RISK for a pod of an earlier revision",
        "safety::why::controllers::a_deployment_that_recreates_waits_for_the_pod_of_its_earlier_revision",
    ),
    (
        "`no-owner` is a RISK",
        "safety::checks::a_set_that_was_created_again_may_start_a_second_pod",
    ),
    (
        "**A majority of all members",
        "fencing::members::a_member_is_replaced_by_the_rules_of_its_set",
    ),
    (
        "**No majority is ready without it**",
        "fencing::members::a_member_is_replaced_by_the_rules_of_its_set",
    ),
    (
        "**Of two members**",
        "safety::checks::a_member_without_which_there_is_no_majority_is_confirmed",
    ),
    (
        "The check looks for a VolumeAttachment.",
        "safety::volumes::disks_without_a_driver_are_attached_too",
    ),
    (
        "A claim that was never bound",
        "safety::volumes::only_a_claim_that_was_never_bound_leads_to_no_volume_for_sure",
    ),
    (
        "It is `unread` if the claim or volume is missing",
        "safety::volumes::only_a_claim_that_was_never_bound_leads_to_no_volume_for_sure",
    ),
    (
        "NFS and similar volumes",
        "safety::volumes::volumes_without_attachment_allow_two_writers",
    ),
    (
        "CSI drivers with `attachRequired: false`",
        "fencing::disks::the_report_shows_what_becomes_of_each_volume",
    ),
    (
        "volumes with the access mode",
        "fencing::disks::the_report_shows_what_becomes_of_each_volume",
    ),
    (
        "iSCSI and Fibre Channel disks without",
        "safety::volumes::disks_without_a_driver_are_attached_too",
    ),
    (
        "CSI volumes in the pod's own spec",
        "safety::volumes::volumes_without_a_claim_are_judged_by_their_kind",
    ),
    (
        "`hostPath`",
        "safety::volumes::a_path_of_the_node_may_be_a_mount_that_others_reach",
    ),
    (
        "volumes that are only meant for reading",
        "safety::volumes::the_access_modes_of_a_volume_show_whether_two_nodes_may_write",
    ),
    (
        "`lease` is a BLOCKER",
        "safety::checks::a_holder_of_the_node_is_not_disturbed",
    ),
    (
        "`remediation` reads",
        "safety::checks::an_operator_that_says_by_a_taint_that_it_is_at_work_is_left_to_finish",
    ),
    (
        "The heartbeat is the node's Lease",
        "safety::unreachable::a_heartbeat_is_as_long_a_sign_of_life_as_its_lease_says",
    ),
    (
        "`fence` also requires",
        "safety::unreachable::a_node_that_is_not_ready_is_unreachable_when_its_heartbeat_is_old",
    ),
    (
        "If the heartbeat changes",
        "safety::unreachable::a_kubelet_whose_clock_is_behind_is_alive",
    ),
    (
        "If a heartbeat is more than 40 s ahead",
        "safety::unreachable::a_heartbeat_far_ahead_of_the_clock_proves_nothing",
    ),
    (
        "If you may not read heartbeats",
        "safety::unreachable::without_heartbeats_the_reported_conditions_count",
    ),
    (
        "**Several pods**",
        "safety::races::a_pod_that_changed_ends_the_deletion_of_the_others",
    ),
    (
        "**Pods of Jobs**",
        "fencing::jobs::a_job_that_replaces_only_failed_pods_gets_one_that_has_failed",
    ),
    (
        "**The node is locked**",
        "safety::deletion::an_own_lease_is_left_as_found",
    ),
    (
        "The Job then counts the pod as failed",
        "safety::why::controllers::a_job_that_counts_the_pod_fails_and_ends_its_other_pods",
    ),
    (
        "The holder is a name of the process",
        "safety::locks::a_second_run_of_the_same_user_is_refused",
    ),
    (
        "If the server refuses the lock",
        "safety::failures::a_refused_lock_is_the_risk_unread_whatever_its_code",
    ),
    (
        "The lock lasts five minutes",
        "safety::locks::a_lock_that_is_taken_over_meanwhile_is_left_to_its_holder",
    ),
    (
        "Under the lock of a `with`",
        "safety::deletion::under_a_lock_of_with_the_line_acts_as_its_holder",
    ),
    (
        "**An Event**",
        "safety::deletion::without_an_owner_the_evidence_is_on_the_node",
    ),
    (
        "**If the request got no answer**",
        "safety::races::a_deletion_that_gets_no_answer_may_still_take_effect",
    ),
    (
        "**The command ends**",
        "safety::deletion::owners_that_miss_pods_are_listed",
    ),
    (
        "**Finalizers**",
        "safety::deletion::a_finalizer_holds_the_object",
    ),
    (
        "**`node/NAME`**",
        "fencing::node_gone::pods_of_a_node_that_registers_again_stay",
    ),
    (
        "The control plane marks the pods",
        "safety::rights::with_rights_on_pods_alone_everything_else_is_unknown_and_it_works",
    ),
    (
        "If the pod is ready",
        "safety::rights::a_ready_pod_shows_that_its_node_is_alive",
    ),
    (
        "`kubectl-maint-owner`",
        "safety::roles::an_owner_deletes_pods_of_the_namespace_and_nothing_else",
    ),
    (
        "`kubectl-maint-operator`",
        "safety::roles::an_operator_knows_all_and_deletes_pods_and_nodes",
    ),
    (
        "The policy ([deploy/pod-policy.yaml]",
        "policy::install::installed_policies_keep_their_mode_until_they_are_removed",
    ),
    (
        "To switch it off",
        "policy::install::installed_policies_keep_their_mode_until_they_are_removed",
    ),
    (
        "There is no warning",
        "safety::warning::people_are_warned_of_a_forced_deletion_and_controllers_are_not",
    ),
    (
        "**At most one pod of each name.**",
        "fencing::force_delete::a_bare_forced_deletion_is_believed_and_a_graceful_one_waits",
    ),
    (
        "**A volume that must be attached",
        "fencing::force_delete::a_hanging_pod_is_replaced_once_its_deletion_was_confirmed",
    ),
    (
        "**A `ReadWriteOncePod` volume",
        "safety::volumes::the_access_modes_of_a_volume_show_whether_two_nodes_may_write",
    ),
    (
        "**Evictions stay within",
        "safety::why::controllers::a_budget_is_explained_by_the_rules_of_the_eviction_api",
    ),
];

/// The source of these tests, without this file.
fn tests(directory: &Path) -> String {
    let entries = fs::read_dir(directory).expect("a directory");
    let text = entries.map(|entry| {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => tests(&path),
            false if path.ends_with("documented.rs") => String::new(),
            false => fs::read_to_string(path).expect("text"),
        }
    });
    text.collect()
}

#[test]
fn every_documented_finding_is_expected_by_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/pod-safety.md")).expect("the page");
    let (_, table) = page.split_once("## The checks\n").expect("the table");
    let (table, _) = table.split_once("\n###").expect("its end");
    let tests = tests(&root.join("tests/safety"));
    let mut documented = Vec::new();
    let mut missing = Vec::new();
    for row in table.lines() {
        let cells: Vec<&str> = row.split('|').collect();
        let Some(id) = cells.get(1).and_then(|cell| cell.split('`').nth(1)) else {
            continue;
        };
        documented.push(id.to_owned());
        for (in_table, in_report, in_data) in LEVELS {
            let expected = [
                format!("\"{id}\", Some(\"{in_data}\")"),
                format!("\"{id}\", \"{in_data}\""),
                format!("{in_report:9}{id} "),
            ];
            if cells[2].contains(in_table) && !expected.iter().any(|text| tests.contains(text)) {
                missing.push(format!("{id}: {in_table}"));
            }
        }
    }
    assert!(missing.is_empty(), "no test expects {missing:?}");
    let checks = pod_safety::checks::RISKS.iter();
    let checks = checks.chain(&pod_safety::checks::BLOCKERS);
    let checks = checks.chain(&pod_safety::checks::FINAL);
    let mut checks = checks.chain(&pod_safety::checks::INFOS);
    let unread = pod_safety::checks::UNREAD;
    let undocumented = checks.find(|id| **id != unread && !documented.iter().any(|one| one == *id));
    assert_eq!(undocumented, None, "it is in no row");
}

/// The items of all lists of the page, the paragraphs that begin with a rule in bold type, and the first cells of all
/// tables except that of the checks.
fn rules(page: &str) -> Vec<&str> {
    let mut rules = Vec::new();
    let (mut is_code, mut section) = (false, "");
    for line in page.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        } else if line.starts_with('#') && !is_code {
            section = line;
        } else if is_code {
            // The output of a command is no rule.
        } else if let Some(row) = line.strip_prefix("| ") {
            let (cell, _) = row.split_once(" |").expect("a cell");
            let is_heading = ["command", "---"].contains(&cell);
            if section != "## The checks" && !is_heading {
                rules.push(cell);
            }
        } else if line.starts_with("**") {
            rules.push(line);
        } else if let Some(item) = line.strip_prefix("- ") {
            rules.push(item);
        }
    }
    rules
}

#[test]
fn every_other_rule_of_the_page_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/pod-safety.md")).expect("the page");
    let rules = rules(&page);
    // The longest match wins, so the beginning of one rule may be the beginning of another.
    let entry = |rule: &str| {
        let fitting = RULES.iter().filter(|(begin, _)| rule.starts_with(begin));
        fitting.max_by_key(|(begin, _)| begin.len())
    };
    let untested: Vec<&&str> = rules.iter().filter(|rule| entry(rule).is_none()).collect();
    assert!(untested.is_empty(), "name a test of {untested:#?}");
    let used: BTreeSet<_> = rules.iter().filter_map(|rule| entry(rule)).collect();
    let left: Vec<_> = RULES.iter().filter(|rule| !used.contains(rule)).collect();
    assert!(left.is_empty(), "the page does not say {left:#?}");
    for (_, test) in RULES {
        let (file, name) = test.rsplit_once("::").expect("a test of a file");
        let file = root.join("tests").join(file.replace("::", "/"));
        let source = fs::read_to_string(file.with_extension("rs")).expect("a file of tests");
        let declared = format!("#[test]\nfn {name}() {{");
        assert!(source.contains(&declared), "there is no {test}");
    }
}
