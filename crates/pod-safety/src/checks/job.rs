//! `job-fails`: what the Job of the pod does once it counts the pod as failed.

use super::verdict::Verdict;
use crate::facts::{Failing, JobFailure};

/// The id of the check.
pub(super) const JOB_FAILS: &str = "job-fails";

pub(super) fn check(failure: Option<&JobFailure>) -> Option<Verdict> {
    let failure = failure?;
    let words = match failure.fails {
        Failing::Job { others: 0 } => "its Job counts the pod as failed, and then fails".to_owned(),
        Failing::Job { others } => {
            let pods = if others == 1 { "pod" } else { "pods" };
            format!(
                "its Job counts the pod as failed, then fails and ends its {others} other {pods}"
            )
        }
        Failing::Index => {
            "its Job counts the pod as failed, and does not run its index again".to_owned()
        }
    };
    Some(Verdict::risk(JOB_FAILS, words).of([&failure.job]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_pods_that_end_is_shown() {
        let words = |fails| {
            let job = "Job/web".to_owned();
            let verdict = check(Some(&JobFailure { job, fails })).expect("a verdict");
            verdict.to_string()
        };
        for (others, expected) in [
            (0, "and then fails: Job/web"),
            (1, "then fails and ends its 1 other pod: Job/web"),
            (3, "then fails and ends its 3 other pods: Job/web"),
        ] {
            let words = words(Failing::Job { others });
            assert!(words.ends_with(expected), "{words}");
        }
        assert_eq!(check(None), None);
    }
}
