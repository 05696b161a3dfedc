//! `finalizers`: which controllers must remove their finalizers before the object is gone.

use super::verdict::Verdict;
use crate::constants::JOB_TRACKING;
use crate::facts::PodSnapshot;

const ID: &str = "finalizers";

/// The verdict on the finalizers of a pod that is to be force-deleted.
pub(super) fn of_pod(pod: &PodSnapshot) -> Verdict {
    if !pod.job_waits {
        return check(&pod.finalizers);
    }
    let others = pod.finalizers.iter().filter(|name| *name != JOB_TRACKING);
    let others: Vec<String> = others.cloned().collect();
    let mut words = format!(
        "its phase is set to Failed first, and its Job counts that: otherwise the Job keeps it forever ({JOB_TRACKING})"
    );
    if !others.is_empty() {
        words = format!("{words}; {}", check(&others));
    }
    Verdict::info(ID, words)
}

pub(super) fn check(finalizers: &[String]) -> Verdict {
    if finalizers.is_empty() {
        return Verdict::ok(ID, "none");
    }
    Verdict::info(
        ID,
        "the object stays until its finalizers are removed, which force-delete never does",
    )
    .of(finalizers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Level;
    use crate::checks::testing::pod;

    #[test]
    fn the_finalizer_of_a_job_is_distinguished_from_others() {
        let pod = |finalizers: &[&str], job_waits| PodSnapshot {
            finalizers: finalizers.iter().map(|&name| name.to_owned()).collect(),
            job_waits,
            ..pod()
        };
        let phase = "its phase is set to Failed first, and its Job counts that: otherwise the Job keeps it forever \
                     (batch.kubernetes.io/job-tracking)";
        let stays =
            "the object stays until its finalizers are removed, which force-delete never does: ";
        let other = "example.com/keep";
        for (finalizers, job_waits, expected) in [
            (&[JOB_TRACKING][..], true, phase.to_owned()),
            (&[JOB_TRACKING], false, format!("{stays}{JOB_TRACKING}")),
            (
                &[other, JOB_TRACKING],
                true,
                format!("{phase}; {stays}{other}"),
            ),
        ] {
            let verdict = of_pod(&pod(finalizers, job_waits));
            assert_eq!(
                (verdict.level, verdict.to_string()),
                (Level::Info, expected)
            );
        }
    }

    #[test]
    fn finalizers_are_worth_a_warning() {
        assert_eq!(check(&[]).level, Level::Ok);
        let kept = check(&["example.com/keep".to_owned(), "example.com/log".to_owned()]);
        assert_eq!(kept.level, Level::Info);
        let words = kept.to_string();
        assert!(
            words.ends_with(": example.com/keep, example.com/log"),
            "{words}"
        );
    }
}
