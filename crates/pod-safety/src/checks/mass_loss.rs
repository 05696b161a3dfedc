//! `mass-loss`: if most nodes are unreachable, the control plane may be the one that is cut off.

use super::verdict::Verdict;
use crate::facts::Zone;
use crate::known::Known;

const ID: &str = "mass-loss";

pub(super) fn check(zone: &Known<Zone>) -> Verdict {
    let zone = match zone {
        Known::Yes(zone) => zone,
        Known::Unknown(why) => {
            return Verdict::unknown(ID, "how many other nodes are unreachable", why);
        }
    };
    let place = match &zone.name {
        Some(name) => format!("zone {name}"),
        None => "the cluster".to_owned(),
    };
    let (silent, nodes) = (zone.silent, zone.nodes);
    if zone.is_lost() {
        Verdict::confirm(
            ID,
            format!(
                "{place}: {silent} of {nodes} nodes are unreachable: the control plane itself may be cut \
                 off, and all of them may still be running"
            ),
        )
    } else {
        Verdict::ok(
            ID,
            format!("{place}: {silent} of {nodes} nodes are unreachable"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Level;
    use crate::checks::testing::forbidden;

    #[test]
    fn over_55_percent_is_suspicious() {
        let level = |silent, nodes| {
            let name = Some("a".to_owned());
            let zone = Zone {
                name,
                nodes,
                silent,
            };
            check(&Known::Yes(zone)).level
        };
        assert_eq!(level(1, 2), Level::Ok);
        assert_eq!(level(11, 20), Level::Ok);
        assert_eq!(level(12, 20), Level::Confirm);
        assert_eq!(level(1, 1), Level::Confirm);
        assert_eq!(check(&forbidden()).level, Level::Unknown);
    }
}
