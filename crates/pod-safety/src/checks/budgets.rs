//! `pdb`: a deletion bypasses the disruption budgets, which only limit evictions.

use super::verdict::Verdict;
use crate::facts::Budget;
use crate::known::Known;

const ID: &str = "pdb";

pub(super) fn check(budgets: &Known<Vec<Budget>>) -> Verdict {
    let budgets = match budgets {
        Known::Yes(budgets) => budgets,
        Known::Unknown(why) => {
            return Verdict::unread(ID, "which disruption budgets cover it", why);
        }
    };
    let spent: Vec<&str> = budgets
        .iter()
        .filter(|budget| budget.allowed < 1)
        .map(|budget| &*budget.name)
        .collect();
    match (&spent[..], &budgets[..]) {
        ([], []) => Verdict::ok(ID, "no disruption budget covers it"),
        ([], budgets) => Verdict::ok(ID, "its disruption budgets allow it").of(budgets
            .iter()
            .map(|one| format!("{} ({} allowed)", one.name, one.allowed))),
        (spent, _) => Verdict::info(
            ID,
            "it bypasses a disruption budget that allows no disruption now",
        )
        .of(spent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Level;
    use crate::checks::testing::forbidden;

    #[test]
    fn a_spent_budget_is_bypassed() {
        let level = |allowed: &[i32]| {
            let budgets = allowed.iter().map(|&allowed| Budget {
                name: "web".to_owned(),
                allowed,
            });
            check(&Known::Yes(budgets.collect())).level
        };
        assert_eq!(level(&[]), Level::Ok);
        assert_eq!(level(&[1]), Level::Ok);
        assert_eq!(level(&[1, 0]), Level::Info);
        assert_eq!(check(&forbidden()).level, Level::Unread);
    }
}
