//! The licenses of third-party code in the programs. Every package contains them as `THIRD-PARTY-LICENSES`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum as _;
use control_plane::target_dir;
use serde::Deserialize;

use super::cross::CrossCompiler;
use super::package::{LEASE_ELECT, PLUGIN, THIRD_PARTY_LICENSES};
use super::platform::Platform;
use crate::cargo::cargo;

/// A library, or another part of a program.
#[derive(Debug)]
struct Part {
    name: String,
    /// The license expression of its authors.
    license: String,
    /// The license text and all notices.
    texts: Vec<String>,
}

/// The path of the file, for packages that are not made from archives.
pub(crate) fn path() -> PathBuf {
    target_dir().join(THIRD_PARTY_LICENSES)
}

/// Writes the file, and returns its content.
///
/// # Errors
/// If a library has no license text.
pub(super) fn write(root: &Path, compiler: &CrossCompiler) -> Result<String> {
    let mut parts = crates(root)?;
    parts.extend(libraries_of_zig(&compiler.zig_directory()?)?);
    parts.push(rust_std()?);
    let text = render(&parts);
    fs::write(path(), &text)?;
    Ok(text)
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    /// `None` for packages of this workspace.
    source: Option<String>,
    license: Option<String>,
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// `None` for a normal dependency. Dependencies for builds or tests have a kind.
    kind: Option<String>,
}

/// The libraries of both programs on all platforms. Features of the whole workspace are enabled, so a few of these
/// libraries may not be in the programs.
fn crates(root: &Path) -> Result<Vec<Part>> {
    let mut metadata = cargo(&["metadata", "--locked", "--format-version=1"]);
    for platform in Platform::value_variants() {
        metadata.args(["--filter-platform", platform.target()]);
    }
    let output = metadata.output()?;
    let failure = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata failed: {failure}");
    let Metadata { packages, resolve } = serde_json::from_slice(&output.stdout)?;

    let nodes: HashMap<&str, &Node> = { resolve.nodes.iter() }
        .map(|node| (node.id.as_str(), node))
        .collect();
    let packages: HashMap<&str, &Package> = { packages.iter() }
        .map(|package| (package.id.as_str(), package))
        .collect();
    let is_program = |package: &&&Package| {
        package.source.is_none()
            && [PLUGIN.program, LEASE_ELECT.program].contains(&package.name.as_str())
    };
    let mut left: Vec<&Package> = packages.values().filter(is_program).copied().collect();
    ensure!(left.len() == 2, "{} programs", left.len());
    let mut found = BTreeMap::new();
    let mut seen = BTreeSet::new();
    while let Some(package) = left.pop() {
        if !seen.insert(&package.id) || package.is_macro() {
            continue;
        }
        if package.source.is_some() {
            found.insert((&package.name, &package.version), package);
        }
        let node = nodes
            .get(package.id.as_str())
            .context("a package without a node")?;
        let linked = |of: &&Dependency| of.dep_kinds.iter().any(|of| of.kind.is_none());
        let linked = node.deps.iter().filter(linked);
        left.extend(linked.filter_map(|of| packages.get(of.pkg.as_str())));
    }
    let apache = fs::read_to_string(root.join("LICENSE"))?;
    found
        .values()
        .map(|package| package.part(&apache))
        .collect()
}

impl Package {
    /// Whether this is a macro, which runs in the compiler and is not in the program.
    fn is_macro(&self) -> bool {
        let mut kinds = self.targets.iter().flat_map(|target| &target.kind);
        kinds.any(|kind| kind == "proc-macro")
    }

    fn part(&self, apache: &str) -> Result<Part> {
        let name = format!("{} {}", self.name, self.version);
        let license = self.license.clone().unwrap_or_default();
        let directory = self.manifest_path.parent().context("no directory")?;
        let mut files = Vec::new();
        add_license_files(directory, &mut files)?;
        files.sort();
        let texts = files.iter().map(|file| read(file));
        let mut texts = texts.collect::<Result<Vec<_>>>()?;
        if texts.is_empty() {
            if !allows_apache(&license) {
                bail!("{name} has no license text, and its license is {license:?}");
            }
            texts.push(apache.to_owned());
        }
        Ok(Part {
            name,
            license,
            texts,
        })
    }
}

/// Finds the files with licenses or notices, including those of code that was copied into a library.
fn add_license_files(directory: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            add_license_files(&entry.path(), found)?;
        } else if is_license_file(&entry.file_name().to_string_lossy()) {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn is_license_file(name: &str) -> bool {
    const BEGINNINGS: [&str; 6] = [
        "LICENSE",
        "LICENCE",
        "UNLICENSE",
        "COPYING",
        "COPYRIGHT",
        "NOTICE",
    ];
    let upper = name.to_uppercase();
    BEGINNINGS.iter().any(|of| upper.starts_with(of)) && !upper.ends_with(".RS")
}

/// Whether the text of the Apache license is enough for this license.
fn allows_apache(license: &str) -> bool {
    let mut choices = license.split(" OR ").flat_map(|of| of.split('/'));
    choices.any(|choice| choice.trim() == "Apache-2.0")
}

/// The libraries that the linker adds to programs.
fn libraries_of_zig(zig: &Path) -> Result<Vec<Part>> {
    let parts = [
        (
            "musl (in programs for Linux)",
            "MIT",
            "lib/libc/musl/COPYRIGHT",
        ),
        (
            "mingw-w64 (in programs for Windows)",
            "ZPL-2.1",
            "lib/libc/mingw/COPYING",
        ),
        (
            "LLVM's libunwind",
            "Apache-2.0 WITH LLVM-exception",
            "lib/libunwind/LICENSE.TXT",
        ),
        ("zig's compiler-rt", "MIT", "LICENSE"),
    ];
    let part = |(name, license, file): (&str, &str, _)| {
        Ok(Part {
            name: name.to_owned(),
            license: license.to_owned(),
            texts: vec![read(&zig.join(file))?],
        })
    };
    parts.map(part).into_iter().collect()
}

/// Rust's standard library, including its dependencies.
fn rust_std() -> Result<Part> {
    let output = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()?;
    let sysroot = String::from_utf8(output.stdout)?;
    let page = Path::new(sysroot.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    let page = read(&page).context("this needs Rust as rustup installs it")?;
    Ok(Part {
        name: "the Rust Standard Library".to_owned(),
        license: "MIT OR Apache-2.0".to_owned(),
        texts: vec![text_of(&page)],
    })
}

/// The text of an HTML page, without consecutive blank lines.
fn text_of(page: &str) -> String {
    let body = page.split_once("<body>").map_or(page, |(_, body)| body);
    let mut text = String::new();
    for (number, part) in body.split('<').enumerate() {
        text += match number {
            0 => part,
            _ => part.split_once('>').map_or("", |(_, text)| text),
        };
    }
    for (entity, character) in [
        ("&#60;", "<"),
        ("&lt;", "<"),
        ("&#62;", ">"),
        ("&gt;", ">"),
        ("&#34;", "\""),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&#38;", "&"),
        ("&amp;", "&"),
    ] {
        text = text.replace(entity, character);
    }
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
    lines.join("\n")
}

/// A list of the parts, and each text once.
fn render(parts: &[Part]) -> String {
    let mut text = format!(
        "{} and {} contain code of others, under these licenses. Their texts follow.\n\n",
        PLUGIN.program, LEASE_ELECT.program
    );
    let mut distinct: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut places = HashMap::new();
    for part in parts {
        text += &format!("- {}: {}\n", part.name, part.license);
        for of in &part.texts {
            // Many copies differ only in their line breaks.
            let words: Vec<&str> = of.split_whitespace().collect();
            let place = *places.entry(words).or_insert_with(|| {
                distinct.push((of, Vec::new()));
                distinct.len() - 1
            });
            let users = &mut distinct[place].1;
            if users.last() != Some(&part.name.as_str()) {
                users.push(&part.name);
            }
        }
    }
    let line = "=".repeat(80);
    for (of, users) in distinct {
        text += &format!("\n{line}\n{}\n{line}\n\n", users.join("\n"));
        text += of.replace('\r', "").trim_matches('\n');
        text += "\n";
    }
    text
}

fn read(file: &Path) -> Result<String> {
    let content = fs::read(file).with_context(|| format!("no {}", file.display()))?;
    Ok(String::from_utf8_lossy(&content).into_owned())
}

#[cfg(test)]
mod tests {
    use super::super::package::root;
    use super::*;

    #[test]
    fn every_library_has_a_license_text() {
        let parts = crates(&root().unwrap()).unwrap();
        let part = |name: &str| {
            let is_it = |part: &&Part| part.name.starts_with(&format!("{name} "));
            parts.iter().find(is_it)
        };
        for name in [
            "kube-client",
            "ring",
            "rustls-native-certs",
            "windows-sys",
            "security-framework",
        ] {
            assert!(part(name).is_some(), "{name}");
        }
        // These are not in the programs: they are for tests or builds, or are macros.
        for name in ["insta", "cc", "serde_derive"] {
            assert!(part(name).is_none(), "{name}");
        }
        assert!(parts.iter().all(|part| !part.texts.is_empty()));
        assert!(part("ring").is_some_and(|ring| ring.texts.len() > 1));
    }

    #[test]
    fn only_the_apache_license_needs_no_text_of_a_library() {
        for (license, expected) in [
            ("Apache-2.0", true),
            ("MIT OR Apache-2.0", true),
            ("MIT/Apache-2.0", true),
            ("Apache-2.0 AND ISC", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", false),
            ("MIT", false),
            ("", false),
        ] {
            assert_eq!(allows_apache(license), expected, "{license}");
        }
    }

    #[test]
    fn each_text_is_written_once_for_all_that_have_it() {
        let part = |name: &str, texts: &[&str]| Part {
            name: name.to_owned(),
            license: "MIT".to_owned(),
            texts: texts.iter().map(|&text| text.to_owned()).collect(),
        };
        let text = render(&[
            part("a 1.0.0", &["the same\r\ntext\r\n"]),
            part("b 1.0.0", &["another text", "the  same text"]),
        ]);
        let (_, texts) = text.split_once("- b 1.0.0: MIT\n").unwrap();
        let line = "=".repeat(80);
        assert_eq!(
            texts,
            format!(
                "\n{line}\na 1.0.0\nb 1.0.0\n{line}\n\nthe same\ntext\n\n{line}\nb 1.0.0\n{line}\n\nanother text\n"
            )
        );
    }

    #[test]
    fn notices_of_the_standard_library_are_plain_text() {
        let page =
            "<head>x</head><body>\n<p>A &#60;a@b&#62;</p>\n\n \n<pre>\"B\" &amp; C</pre></body>";
        assert_eq!(text_of(page), "\nA <a@b>\n\n\"B\" & C");
        let texts = rust_std().unwrap().texts.concat();
        assert!(texts.contains("The Rust Project Developers"), "{texts}");
        assert!(!texts.contains("</"), "{texts}");
    }
}
