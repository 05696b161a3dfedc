//! `finalizers`: who has to agree before the object goes.

use super::verdict::Verdict;
use crate::facts::PodSight;
use crate::words::listed;

const ID: &str = "finalizers";

pub(super) fn check(pod: &PodSight) -> Verdict {
    if pod.finalizers.is_empty() {
        return Verdict::ok(ID, "none");
    }
    Verdict::warn(
        ID,
        format!(
            "the object will remain until its finalizers are gone, which are not touched: {}",
            listed(&pod.finalizers)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Level;
    use crate::checks::testing::pod;

    #[test]
    fn finalizers_are_worth_a_warning() {
        assert_eq!(check(&pod()).level, Level::Ok);
        let kept = PodSight {
            finalizers: vec!["example.com/keep".to_owned()],
            ..pod()
        };
        assert_eq!(check(&kept).level, Level::Warn);
    }
}
