//! Durations that are refused. Each message says what is wrong and what is accepted.

use insta::assert_snapshot;

use crate::support::Cluster;

fn acquire_for(duration: &str) -> String {
    let cluster = Cluster::nowhere();
    let run = cluster
        .maint(["acquire", "worker-1", "--duration", duration])
        .run();
    assert_eq!(run.stdout, "");
    run.to_string()
}

#[test]
fn zero_seconds() {
    // A lock needs a duration of at least one second.
    assert_snapshot!(acquire_for("0s"), @"
    $ kubectl maint acquire worker-1 --duration 0s
    -- stderr
    error: invalid value '0s' for '--duration <TIME>': must be a whole number of seconds from 1s to 1h
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
    assert_snapshot!(acquire_for("0"), @"
    $ kubectl maint acquire worker-1 --duration 0
    -- stderr
    error: invalid value '0' for '--duration <TIME>': must be a whole number of seconds from 1s to 1h
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
    assert_snapshot!(acquire_for(""), @r#"
    $ kubectl maint acquire worker-1 --duration ""
    -- stderr
    error: invalid value '' for '--duration <TIME>': not a duration, e.g. 90s, 30m or 1h
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    "#);
}

#[test]
fn less_than_a_second() {
    // A Lease stores whole seconds.
    assert_snapshot!(acquire_for("0.5s"), @"
    $ kubectl maint acquire worker-1 --duration 0.5s
    -- stderr
    error: invalid value '0.5s' for '--duration <TIME>': must be a whole number of seconds from 1s to 1h
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
    assert_snapshot!(acquire_for("500ms"), @"
    $ kubectl maint acquire worker-1 --duration 500ms
    -- stderr
    error: invalid value '500ms' for '--duration <TIME>': must be a whole number of seconds from 1s to 1h
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
    assert_snapshot!(acquire_for("1500ms"), @"
    $ kubectl maint acquire worker-1 --duration 1500ms
    -- stderr
    error: invalid value '1500ms' for '--duration <TIME>': must be a whole number of seconds from 1s to 1h
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
}

#[test]
fn more_than_an_hour() {
    // The limit is one hour.
    assert_snapshot!(acquire_for("61m"), @"
    $ kubectl maint acquire worker-1 --duration 61m
    -- stderr
    error: invalid value '61m' for '--duration <TIME>': must not be longer than 1h
    hint: use a hold, which does not expire: `kubectl maint hold worker-1 -m WHY --expect-until 61m`
    -- exit code 2
    ");
    assert_snapshot!(acquire_for("3601s"), @"
    $ kubectl maint acquire worker-1 --duration 3601s
    -- stderr
    error: invalid value '3601s' for '--duration <TIME>': must not be longer than 1h
    hint: use a hold, which does not expire: `kubectl maint hold worker-1 -m WHY --expect-until 3601s`
    -- exit code 2
    ");
    assert_snapshot!(acquire_for("99999999999999999999y"), @"
    $ kubectl maint acquire worker-1 --duration 99999999999999999999y
    -- stderr
    error: invalid value '99999999999999999999y' for '--duration <TIME>': not a duration, e.g. 90s, 30m or 1h
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
}

#[test]
fn negative() {
    assert_snapshot!(acquire_for("-5m"), @"
    $ kubectl maint acquire worker-1 --duration -5m
    -- stderr
    error: invalid value '-5m' for '--duration <TIME>': not a duration, e.g. 90s, 30m or 1h
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
}

#[test]
fn nonsense() {
    // Without a unit, the value is ambiguous.
    assert_snapshot!(acquire_for("30"), @"
    $ kubectl maint acquire worker-1 --duration 30
    -- stderr
    error: invalid value '30' for '--duration <TIME>': add a unit, e.g. 30s or 30m
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
    assert_snapshot!(acquire_for("soon"), @"
    $ kubectl maint acquire worker-1 --duration soon
    -- stderr
    error: invalid value 'soon' for '--duration <TIME>': not a duration, e.g. 90s, 30m or 1h
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
    assert_snapshot!(acquire_for("30\x1b[31mm"), @r#"
    $ kubectl maint acquire worker-1 --duration "30\u{1b}[31mm"
    -- stderr
    error: invalid value '30\u{1b}[31mm' for '--duration <TIME>': not a duration, e.g. 90s, 30m or 1h
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    "#);
}
