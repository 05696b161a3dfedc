//! Checks a history against the guarantee only: two commands never run at the same time. The exception is a command
//! whose lock was broken, until its deadline.

use std::fmt;
use std::time::Duration;

use crate::history::{Boot, CommandActivity, Event, Exit, History, Run};

/// A violation of the guarantee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// Two commands ran at the same time.
    Together { first: String, second: String },
    /// A command ran after its lease no longer allowed it.
    Outlived {
        run: String,
        allowed: Boot,
        last: Boot,
    },
    /// A command ran after its `with` had exited.
    Survived { run: String },
    /// A command began while an administrator's hold was in place.
    DuringHold { run: String },
    /// The exit code does not match what happened.
    ExitCode { run: String, exit: Exit },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Together { first, second } => write!(f, "{first} and {second} ran at once"),
            Self::Outlived { run, allowed, last } => {
                write!(
                    f,
                    "{run} was alive at {last}, and only allowed until {allowed}"
                )
            }
            Self::Survived { run } => write!(f, "the command of {run} was alive after its end"),
            Self::DuringHold { run } => write!(f, "{run} began under an administrator's hold"),
            Self::ExitCode { run, exit } => write!(f, "{run} ended with {exit:?}"),
        }
    }
}

/// All violations in `history`.
pub(crate) fn violations(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    for (index, run) in history.runs.iter().enumerate() {
        found.extend(exit_code(run));
        let Some(work) = run.work else { continue };
        found.extend(survived(run, work));
        for event in &history.events {
            found.extend(against(event, run, work));
        }
        let others = history.runs[index + 1..].iter();
        found.extend(others.filter_map(|other| together(history, (run, work), other)));
    }
    found
}

/// Checks the exit code of `with`: it must match a command that ran to its end, a lost lock, or a command that was not
/// run.
fn exit_code(run: &Run) -> Option<Violation> {
    let is_right = match (run.exit, run.work) {
        (Exit::Code(0), work) => work.is_some_and(|work| work.finished),
        // A lock may be lost before its command has written anything.
        (Exit::Code(5) | Exit::Killed, _) => true,
        // The command was killed with its supervisor.
        (Exit::Code(137), work) => work.is_some_and(|work| !work.finished),
        // The lock was held by another, the wait timed out, or the server did not answer.
        (Exit::Code(3 | 4 | 125), work) => work.is_none(),
        (Exit::Code(_), _) => false,
    };
    (!is_right).then(|| Violation::ExitCode {
        run: run.name.clone(),
        exit: run.exit,
    })
}

fn survived(run: &Run, work: CommandActivity) -> Option<Violation> {
    if run.exit == Exit::Killed {
        // A killed `with` can't wait for the end of its command. The command must end when the last lease does.
        let allowed = run.returned.plus(run.lease);
        return (work.last > allowed).then(|| Violation::Outlived {
            run: run.name.clone(),
            allowed,
            last: work.last,
        });
    }
    (work.last > run.returned).then(|| Violation::Survived {
        run: run.name.clone(),
    })
}

fn against(event: &Event, run: &Run, work: CommandActivity) -> Option<Violation> {
    let outlived = |name: &str, at: Boot, duration: Duration| {
        let allowed = at.plus(duration);
        (run.name == name && work.last > allowed).then(|| Violation::Outlived {
            run: name.to_owned(),
            allowed,
            last: work.last,
        })
    };
    match event {
        Event::CutOff { run, at, duration } => outlived(run, *at, *duration),
        Event::Broken {
            run,
            until,
            duration,
            ..
        } => outlived(run, *until, *duration),
        Event::Hold { from, until } => {
            (work.began > *from && work.began < *until).then(|| Violation::DuringHold {
                run: run.name.clone(),
            })
        }
    }
}

fn together(history: &History, one: (&Run, CommandActivity), other: &Run) -> Option<Violation> {
    let other = (other, other.work?);
    let (first, second) = if one.1.began <= other.1.began {
        (one, other)
    } else {
        (other, one)
    };
    let is_at_once = first.1.last > second.1.began;
    let is_allowed = history.events.iter().any(|event| match event {
        Event::Broken { run, from, .. } => *run == first.0.name && second.1.began >= *from,
        _ => false,
    });
    (is_at_once && !is_allowed).then(|| Violation::Together {
        first: first.0.name.clone(),
        second: second.0.name.clone(),
    })
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    const LEASE: Duration = Duration::from_secs(8);

    fn run(name: &str, began: u64, last: u64) -> Run {
        Run {
            name: name.to_owned(),
            lease: LEASE,
            exit: Exit::Code(0),
            started: Boot(began - 1),
            returned: Boot(last + 1),
            work: Some(CommandActivity {
                began: Boot(began),
                last: Boot(last),
                finished: true,
            }),
        }
    }

    fn refused(name: &str, code: i32) -> Run {
        Run {
            exit: Exit::Code(code),
            work: None,
            ..run(name, 100, 200)
        }
    }

    fn lost(name: &str, began: u64, last: u64) -> Run {
        let mut run = run(name, began, last);
        run.exit = Exit::Code(5);
        run.work.as_mut().expect("it ran").finished = false;
        run
    }

    fn broken(run: &str, from: u64, until: u64) -> Event {
        Event::Broken {
            run: run.to_owned(),
            from: Boot(from),
            until: Boot(until),
            duration: LEASE,
        }
    }

    fn cut_off(run: &str, at: u64) -> Event {
        Event::CutOff {
            run: run.to_owned(),
            at: Boot(at),
            duration: LEASE,
        }
    }

    #[track_caller]
    fn found(runs: &[Run], events: &[Event]) -> Vec<String> {
        let history = History {
            runs: runs.to_vec(),
            events: events.to_vec(),
        };
        let found = violations(&history).into_iter();
        found.map(|violation| violation.to_string()).collect()
    }

    #[test]
    fn one_after_another_is_right() {
        let runs = [run("a", 100, 200), run("b", 200, 300), refused("c", 3)];
        assert!(found(&runs, &[]).is_empty());
    }

    #[test]
    fn two_holders_are_found_in_any_order_of_their_records() {
        let at_once = ["a and b ran at once"];
        assert_eq!(
            found(&[run("a", 100, 201), run("b", 200, 300)], &[]),
            at_once
        );
        assert_eq!(
            found(&[run("b", 200, 300), run("a", 100, 201)], &[]),
            at_once
        );
        assert_eq!(
            found(&[run("a", 100, 900), run("b", 200, 300)], &[]),
            at_once
        );
    }

    #[test]
    fn a_lost_or_killed_command_may_not_run_beside_another_either() {
        let mut killed = lost("a", 100, 201);
        killed.exit = Exit::Killed;
        for first in [lost("a", 100, 201), killed] {
            let runs = [first, run("b", 200, 300)];
            assert_eq!(found(&runs, &[]), ["a and b ran at once"]);
        }
    }

    #[test]
    fn being_cut_off_allows_no_overlap() {
        let runs = [lost("a", 100, 400), run("b", 350, 500)];
        assert_eq!(found(&runs, &[cut_off("a", 150)]), ["a and b ran at once"]);
    }

    #[test]
    fn a_broken_lock_allows_overlap_until_its_deadline() {
        let runs = [lost("a", 100, 960), run("b", 150, 500)];
        assert!(found(&runs, &[broken("a", 140, 160)]).is_empty());
        let outlived = ["a was alive at 9.61, and only allowed until 9.60"];
        let runs = [lost("a", 100, 961), run("b", 150, 500)];
        assert_eq!(found(&runs, &[broken("a", 140, 160)]), outlived);
    }

    #[test]
    fn a_broken_lock_allows_overlap_only_for_its_holder() {
        let of_another = [lost("a", 100, 400), run("b", 150, 500), run("c", 600, 700)];
        assert_eq!(
            found(&of_another, &[broken("c", 140, 160)]),
            ["a and b ran at once"]
        );
        let of_the_later = [lost("a", 100, 400), run("b", 150, 500)];
        assert_eq!(
            found(&of_the_later, &[broken("b", 140, 160)]),
            ["a and b ran at once"]
        );
    }

    #[test]
    fn an_acquisition_before_a_takeover_may_have_failed() {
        let runs = [lost("a", 100, 400), run("b", 139, 500)];
        let events = [broken("a", 140, 160)];
        assert_eq!(found(&runs, &events), ["a and b ran at once"]);
    }

    #[test]
    fn nobody_lives_longer_than_the_last_renewal_allows() {
        assert!(found(&[lost("a", 100, 950)], &[cut_off("a", 150)]).is_empty());
        let outlived = ["a was alive at 9.51, and only allowed until 9.50"];
        assert_eq!(
            found(&[lost("a", 100, 951)], &[cut_off("a", 150)]),
            outlived
        );
        let mut killed = lost("a", 100, 951);
        killed.exit = Exit::Killed;
        assert_eq!(found(&[killed], &[cut_off("a", 150)]), outlived);
    }

    #[test]
    fn a_command_is_over_when_its_wrapper_says_so() {
        let mut surviving = lost("a", 100, 200);
        surviving.returned = Boot(199);
        let survived = ["the command of a was alive after its end"];
        assert_eq!(found(&[surviving.clone()], &[]), survived);
        surviving.exit = Exit::Killed;
        assert!(found(&[surviving], &[]).is_empty());
    }

    #[test]
    fn the_command_of_a_killed_wrapper_lives_no_longer_than_its_lease() {
        let mut killed = lost("a", 100, 999);
        killed.exit = Exit::Killed;
        killed.returned = Boot(199);
        assert!(found(&[killed.clone()], &[]).is_empty());
        killed.returned = Boot(198);
        let outlived = ["a was alive at 9.99, and only allowed until 9.98"];
        assert_eq!(found(&[killed], &[]), outlived);
    }

    #[test]
    fn nobody_begins_under_a_hold() {
        let hold = Event::Hold {
            from: Boot(150),
            until: Boot(400),
        };
        let during = ["b began under an administrator's hold"];
        assert_eq!(found(&[run("b", 200, 300)], slice::from_ref(&hold)), during);
        let around = [lost("a", 100, 160), run("b", 400, 500)];
        assert!(found(&around, &[hold]).is_empty());
    }

    #[test]
    fn an_exit_code_says_what_happened() {
        let mut unfinished = lost("a", 100, 200);
        unfinished.exit = Exit::Code(0);
        assert_eq!(found(&[unfinished], &[]), ["a ended with Code(0)"]);
        assert_eq!(found(&[refused("a", 0)], &[]), ["a ended with Code(0)"]);
        for code in [1, 2, 3, 4, 125, 137, 143] {
            let mut worked = run("a", 100, 200);
            worked.exit = Exit::Code(code);
            assert_eq!(
                found(&[worked], &[]),
                [format!("a ended with Code({code})")]
            );
        }
        for code in [3, 4, 5, 125] {
            assert!(found(&[refused("a", code)], &[]).is_empty());
        }
        let mut killed = lost("a", 100, 200);
        killed.exit = Exit::Code(137);
        assert!(found(&[killed], &[]).is_empty());
    }

    #[test]
    fn commands_write_their_own_part() {
        let mut history = History {
            runs: vec![refused("a.1", 0), refused("b.1", 5), refused("b.2", 3)],
            events: Vec::new(),
        };
        let journal =
            "begin a.1 1.05\nalive a.1 1.10\nend a.1 1.20\nbegin b.1 2.00\nalive b.1 2.07\n";
        assert_eq!(history.read(journal), Ok(()));
        let work = |began, last, finished| {
            Some(CommandActivity {
                began: Boot(began),
                last: Boot(last),
                finished,
            })
        };
        let works: Vec<_> = history.runs.iter().map(|run| run.work).collect();
        assert_eq!(works, [work(105, 120, true), work(200, 207, false), None]);
    }

    #[test]
    fn a_journal_that_nobody_can_have_written_is_no_proof() {
        for journal in [
            "begin x.1 1.05\n",
            "alive a.1 1.05\n",
            "begin a.1 1.05\nbegin a.1 1.06\n",
            "begin a.1 1.5\n",
            "begin a.1\n",
        ] {
            let mut history = History {
                runs: vec![refused("a.1", 0)],
                events: Vec::new(),
            };
            assert!(history.read(journal).is_err(), "{journal}");
        }
    }
}
