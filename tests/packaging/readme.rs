//! The README is short, and answers the questions of a new reader in this order.

const README: &str = include_str!("../../README.md");

#[test]
fn readme_has_at_most_1500_words() {
    let words = README.split_whitespace().count();
    assert!(words <= 1500, "{words}");
}

#[test]
fn readme_is_in_order() {
    let mut is_code = false;
    let lines = README.lines().filter(|line| {
        is_code ^= line.starts_with("```");
        !is_code
    });
    let headings: Vec<&str> = lines.filter(|line| line.starts_with('#')).collect();
    assert_eq!(
        headings,
        [
            "# kubectl maint",
            "## Install",
            "## Quick start",
            "## What it does and does not do",
            "## The node is already locked",
            "## Guarantees",
            "## Stuck pods and dead nodes",
            "## For teams",
            "## More",
        ]
    );
}
