//! kubectl's documented forms.

use insta::assert_snapshot;
use serde_json::json;

use super::*;

fn data() -> Value {
    json!({
        "kind": "NodeMaintenanceList",
        "items": [
            {"node": "a", "state": "Locked", "secondsLeft": 90, "labels": {"example.com/rack": "r7"},
             "record": {"who": "carol", "how": ["x", "y"]}},
            {"node": "b", "state": "Free"},
            {"node": "c", "state": "Locked", "secondsLeft": 1200, "reason": "red\u{1b}[31m\nalert"},
        ],
    })
}

fn escape(text: &str) -> String {
    let escaped = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

fn rendered(format: &str) -> Rendered {
    match Template::parse(format).expect("a template") {
        Ok(template) => template.apply(&data(), escape).expect("it exists"),
        Err(why) => panic!("{why}"),
    }
}

fn refused(format: &str) -> String {
    Template::parse(format)
        .expect("a template")
        .expect_err("invalid")
}

#[test]
fn paths_are_read_as_kubectl_reads_them() {
    for (template, expected) in [
        ("{.items[*].node}", "a b c"),
        ("{$.items[*].node}", "a b c"),
        ("{ .items[*].node }", "a b c"),
        ("{range.items[0]}{.node}{end}", "a"),
        ("{.items[*]['node']}", "a b c"),
        ("{.items[0].node}", "a"),
        ("{.items[-1].node}", "c"),
        ("{.items[-1:].node}", "c"),
        ("{.items[3:].node}", ""),
        ("{.items[:0].node}{.items[1:1].node}", ""),
        ("{.items[0:-1].node}", "a b"),
        ("{.items[ 0 , 1:3 ].node}", "a b c"),
        ("{.items[0:2].node}", "a b"),
        ("{.items[0,2].node}", "a c"),
        ("{.items[::2].node}", "a c"),
        ("{.items[*]['node','state']}", "a b c Locked Free Locked"),
        ("{.items[*]['node', 'record.who']}", "a b c carol"),
        ("{..who}", "carol"),
        ("{..record.how[*]}", "x y"),
        ("{.items[?(@.state==\"Locked\")].node}", "a c"),
        ("{.items[?(@.state!='Locked')].node}", "b"),
        ("{.items[?(@.secondsLeft<600)].node}", "a"),
        ("{.items[?(@.secondsLeft)].node}", "a c"),
        ("{.items[0].labels.example\\.com/rack}", "r7"),
        (
            "{.items[0].record}",
            "{\"how\":[\"x\",\"y\"],\"who\":\"carol\"}",
        ),
        ("{.items[0].record.*}", "[\"x\",\"y\"] carol"),
        ("{.items[1].reason}{.nothing.at[3].all}", ""),
        ("{.items[2].reason}", r"red\u{1b}[31m\nalert"),
        (
            "{.kind}: {.items[0].secondsLeft}s",
            "NodeMaintenanceList: 90s",
        ),
        ("no braces", "no braces"),
        (
            "{range .items[*]}{.node}{\"\\t\"}{.state}{\"\\n\"}{end}",
            "a\tLocked\nb\tFree\nc\tLocked",
        ),
        (
            "{range .items[0]}{@.node} of {$.kind}{'; '}{range .record.how[*]}{@}!{end}{end}",
            "a of NodeMaintenanceList; x!y!",
        ),
    ] {
        let expected = Rendered::Text(expected.to_owned());
        assert_eq!(
            rendered(&format!("jsonpath={template}")),
            expected,
            "{template}"
        );
    }
}

#[test]
fn columns_are_a_table_with_a_row_for_each_item() {
    let table = |template: &str, data: &Value| {
        let template = Template::parse(template).expect("one").expect("valid");
        let rendered = template.apply(data, ToOwned::to_owned);
        let Ok(Rendered::Table { headers, rows }) = rendered else {
            panic!("no table");
        };
        let lines = [headers].into_iter().chain(rows);
        let lines = lines.map(|cells| cells.join(" | "));
        lines.collect::<Vec<_>>().join("\n")
    };
    let columns =
        "custom-columns=NODE:.node,LEFT:{.secondsLeft},HOW:record.how[*],BOTH:.record['who','how']";
    assert_snapshot!(table(columns, &data()), @r#"
    NODE | LEFT | HOW | BOTH
    a | 90 | x,y | carol,["x","y"]
    b | <none> | <none> | <none>
    c | 1200 | <none> | <none>
    "#);
    let one = json!({"node": "a"});
    assert_eq!(table("custom-columns=NODE:.node", &one), "NODE\na");
    assert_eq!(table("custom-columns=:.node,B:", &one), " | B\na | <none>");
}

#[test]
fn elements_that_do_not_exist_are_an_error_as_in_kubectl() {
    let failed = |format: &str| {
        let template = Template::parse(format).expect("one").expect("valid");
        template.apply(&data(), escape).expect_err("no element")
    };
    for (path, expected) in [
        (
            ".items[9].node",
            "array index out of bounds: index 9, length 3",
        ),
        (
            ".items[-9].node",
            "array index out of bounds: index -6, length 3",
        ),
        (
            ".items[0:9].node",
            "array index out of bounds: index 8, length 3",
        ),
        (
            ".items[0,5]",
            "array index out of bounds: index 5, length 3",
        ),
        (
            ".items[2:1]",
            "starting index 2 is greater than ending index 1",
        ),
        (".items[::-1]", "step must be > 0"),
        (".items[0].record[0]", "map is not array or slice"),
        (".kind[0]", "string is not array or slice"),
    ] {
        assert_eq!(failed(&format!("jsonpath={{{path}}}")), expected, "{path}");
    }
    let range = "jsonpath={range .items[*]}{.labels[0]}{end}";
    assert_eq!(failed(range), "map is not array or slice");
    let column = "custom-columns=NODE:.node,HOW:.record.how[2]";
    assert_eq!(
        failed(column),
        "array index out of bounds: index 2, length 2"
    );
}

#[test]
fn bad_templates_are_refused_with_what_is_wrong() {
    let all = [
        "jsonpath=",
        "jsonpath={if}",
        "jsonpath={items[*].node}",
        "jsonpath={{.items[*].node}}",
        "jsonpath={3}",
        "jsonpath={.items[0].node state}",
        "jsonpath={range}",
        "jsonpath={.items[*].node",
        "jsonpath={.items[*}",
        "jsonpath={}",
        "jsonpath={end}",
        "jsonpath={range .items[*]}{.node}",
        "jsonpath={.items[?(@.node==)]}",
        "jsonpath={.items...node}",
        "jsonpath={.items.}",
        "jsonpath={\"text}",
        "jsonpath={\"a\"b}",
        "jsonpath={\"a\\u00e9\"}",
        "custom-columns=",
        "custom-columns=NODE",
        "custom-columns=NODE:.node,",
        "custom-columns=NODE:.node[",
    ];
    let all: Vec<String> = all
        .into_iter()
        .map(|format| format!("{format}: {}", refused(format)))
        .collect();
    assert_snapshot!(all.join("\n"), @r#"
    jsonpath=: template format specified but no template given
    jsonpath={if}: unrecognized identifier if
    jsonpath={items[*].node}: unrecognized identifier items
    jsonpath={{.items[*].node}}: unrecognized character in action: U+007B '{'
    jsonpath={3}: unrecognized identifier 3
    jsonpath={.items[0].node state}: ".items[0].node state" is not a JSONPath: unrecognized identifier state
    jsonpath={range}: {range} has no path
    jsonpath={.items[*].node: unclosed action
    jsonpath={.items[*}: unclosed action
    jsonpath={}: {} has no path
    jsonpath={end}: not in range, nothing to end
    jsonpath={range .items[*]}{.node}: a {range ...} has no {end}
    jsonpath={.items[?(@.node==)]}: ".items[?(@.node==)]" is not a JSONPath: see docs/scripts.md for the syntax
    jsonpath={.items...node}: ".items...node" is not a JSONPath: a name is missing after a dot
    jsonpath={.items.}: ".items." is not a JSONPath: a name is missing after a dot
    jsonpath={"text}: unclosed action
    jsonpath={"a"b}: "a"b is not a quoted text
    jsonpath={"a\u00e9"}: "a\u00e9" has the unknown escape \u
    custom-columns=: custom-columns format specified but no custom columns given
    custom-columns=NODE: "NODE" is not a column; write HEADER:PATH, e.g. NODE:.node
    custom-columns=NODE:.node,: "" is not a column; write HEADER:PATH, e.g. NODE:.node
    custom-columns=NODE:.node[: ".node[" is not a JSONPath: a [ has no ]
    "#);
    let nested = |depth| {
        format!(
            "jsonpath={}{}",
            "{range .a}".repeat(depth),
            "{end}".repeat(depth)
        )
    };
    assert!(Template::parse(&nested(10)).expect("a template").is_ok());
    assert_eq!(refused(&nested(11)), "ranges are nested more than 10 deep");
    for other in ["json", "json=x", "jsonpath", "wide"] {
        assert!(Template::parse(other).is_none(), "{other}");
    }
}
