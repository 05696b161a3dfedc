//! Suggestions for mistyped names.

use super::hint_command::Program;
use super::usage::did_you_mean;

/// How many names are suggested.
const MOST: usize = 2;

/// With more hints, it is quicker to look at all names.
const MOST_HINTS: usize = 2;

/// The known names that are within a typo of `typed`, the nearest first.
pub(crate) fn near_misses<'a>(
    typed: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Vec<&'a str> {
    let reach = (typed.len() / 3).clamp(1, 4);
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(typed, name), name))
        .filter(|&(distance, _)| distance > 0 && distance <= reach)
        .collect();
    near.sort_unstable();
    near.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// What to type instead of the nodes in `unknown`, which don't exist: known names that were not given too, a
/// line for each if these are few, else how to list all.
pub(crate) fn instead_of(unknown: &[String], known: &[&str], program: &Program) -> Vec<String> {
    let hints = unknown.iter().filter_map(|typed| {
        let others = known.iter().copied().filter(|known| !program.names(known));
        let near = near_misses(typed, others);
        let whose = match program.names_one() {
            true => String::new(),
            false => format!("{typed}: "),
        };
        (!near.is_empty()).then(|| format!("{whose}{}", did_you_mean(&near.join(", "))))
    });
    let hints: Vec<String> = hints.take(MOST_HINTS + 1).collect();
    match hints.len() {
        1..=MOST_HINTS => hints,
        _ => vec![format!(
            "list all nodes with `{}`",
            program.run("status --all")
        )],
    }
}

/// How many more nodes don't exist.
pub(crate) fn more_unknown(nodes: usize) -> String {
    format!("{nodes} more nodes not found")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognized_by_distance_and_not_by_prefix_alone() {
        let known = [
            "worker-1",
            "worker-2",
            "worker-11",
            "control-plane-1",
            "rowker-1",
        ];
        assert_eq!(
            near_misses("wroker-1", known)[0],
            "worker-1",
            "swapped letters"
        );
        assert_eq!(near_misses("orker-1", known)[0], "worker-1");
        assert_eq!(near_misses("database", known), Vec::<&str>::new());
    }
}
