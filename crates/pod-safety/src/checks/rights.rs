//! `rights`: whether the user has the permission for the next write.

use super::verdict::Verdict;
use crate::known::Known;

/// The caller lacks a permission.
pub const RIGHTS: &str = "rights";

pub(super) fn check(right: &str, may: &Known<bool>) -> Verdict {
    match may {
        Known::Yes(true) => Verdict::ok(RIGHTS, format!("you may {right}")),
        Known::Yes(false) => {
            Verdict::blocker(RIGHTS, format!("you do not have permission to {right}"))
        }
        Known::Unknown(why) => Verdict::unread(RIGHTS, &format!("whether you may {right}"), why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Level;
    use crate::checks::testing::forbidden;

    #[test]
    fn a_missing_right_is_named() {
        let verdict = |may| check("delete pods", may);
        assert_eq!(verdict(&Known::Yes(true)).level, Level::Ok);
        let missing = verdict(&Known::Yes(false));
        assert_eq!(missing.level, Level::Blocker);
        assert_eq!(missing.words, "you do not have permission to delete pods");
        let unknown = verdict(&forbidden());
        assert_eq!((unknown.id, unknown.level), (RIGHTS, Level::Unread));
    }
}
