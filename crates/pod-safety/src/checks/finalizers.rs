//! `finalizers`: who has to agree before the object goes.

use super::verdict::Verdict;
use crate::words::few;

const ID: &str = "finalizers";

pub(super) fn check(finalizers: &[String]) -> Verdict {
    if finalizers.is_empty() {
        return Verdict::ok(ID, "none");
    }
    Verdict::warn(
        ID,
        format!(
            "the object stays until its finalizers are removed, which force-delete never does: {}",
            few(finalizers)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Level;

    #[test]
    fn finalizers_are_worth_a_warning() {
        assert_eq!(check(&[]).level, Level::Ok);
        let kept = check(&["example.com/keep".to_owned(), "example.com/log".to_owned()]);
        assert_eq!(kept.level, Level::Warn);
        assert!(
            kept.words.ends_with(": example.com/keep, example.com/log"),
            "{}",
            kept.words
        );
    }
}
