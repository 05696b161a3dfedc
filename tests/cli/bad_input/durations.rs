//! Durations that are refused. Each message says what is wrong and what is accepted.

use crate::support::Cluster;

#[test]
fn a_lock_lasts_whole_seconds_up_to_an_hour() {
    let range = "must be a whole number of seconds from 1s to 1h";
    let unknown = "not a duration, e.g. 90s, 30m or 1h";
    for (typed, problem) in [
        ("0s", range),
        ("0", range),
        ("0.5s", range),
        ("1500ms", range),
        (
            "61m",
            "must not be longer than 1h; if the work takes longer, use hold",
        ),
        ("99999999999999999999y", unknown),
        ("-5m", unknown),
        ("30", "add a unit, e.g. 30s or 30m"),
        ("soon", unknown),
    ] {
        let flag = format!("--duration={typed}");
        let run = Cluster::nowhere().maint(["acquire", "worker-1", &flag]);
        let run = run.run();
        assert!(run.stderr.contains(&format!(": {problem}\n")), "{run}");
        assert_eq!((run.code, &*run.stdout), (2, ""), "{run}");
    }
}
