//! `mass-loss`: if most nodes are unreachable, the control plane itself may be cut off.

use super::verdict::Verdict;
use crate::facts::Zone;
use crate::facts::node::POSSIBLE_CAUSE;
use crate::known::Known;

const ID: &str = "mass-loss";

pub(super) fn check(zone: &Known<Zone>) -> Verdict {
    match zone {
        Known::Unknown(why) => Verdict::unread(ID, "how many other nodes are unreachable", why),
        Known::Yes(zone) if zone.is_lost() => {
            Verdict::risk(ID, format!("{zone}: {POSSIBLE_CAUSE}"))
        }
        Known::Yes(zone) => Verdict::ok(ID, zone.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Level;
    use crate::checks::testing::forbidden;
    use crate::facts::Nodes;

    #[test]
    fn a_lost_zone_is_compared_with_the_others() {
        let check = |unreachable, all, others_unreachable, others| {
            let zone = Zone {
                name: Some("a".to_owned()),
                nodes: Nodes { all, unreachable },
                others: Nodes {
                    all: others,
                    unreachable: others_unreachable,
                },
            };
            let verdict = check(&Known::Yes(zone));
            (verdict.level, verdict.words)
        };
        let ok = (
            Level::Ok,
            "1 of 1 nodes of zone a are unreachable".to_owned(),
        );
        assert_eq!(check(1, 1, 0, 2), ok);
        let (level, words) = check(3, 3, 0, 6);
        assert_eq!(level, Level::Risk);
        assert_eq!(
            words,
            "3 of 3 nodes of zone a are unreachable: the zone or the control plane may be cut off, with all of its nodes still \
             running"
        );
        assert_eq!(check(1, 1, 2, 2).0, Level::Risk);
        assert_eq!(super::check(&forbidden()).level, Level::Unread);
    }
}
