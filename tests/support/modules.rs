//! The modules of a test binary.

/// Expects that `main`, the text of `tests/BINARY/main.rs`, declares every file and folder beside it. Tests in a file
/// that no `mod` names would never run.
#[track_caller]
pub(crate) fn are_all_declared(binary: &str, main: &str) {
    let here = format!("{}/tests/{binary}", env!("CARGO_MANIFEST_DIR"));
    for entry in std::fs::read_dir(here).expect("the directory of that file") {
        let path = entry.expect("an entry").path();
        if !path.is_dir() && path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .expect("a name");
        let declaration = format!("mod {name};");
        let declared = name == "main" || main.lines().any(|line| line == declaration);
        assert!(declared, "{} is not a module", path.display());
    }
}
