//! Helpers for the commands that prove something with real controllers.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use control_plane::ControlPlane;
use serde_json::Value;

/// Creates an object, or the objects of a list.
pub(crate) fn create_objects(plane: &ControlPlane, objects: &Value) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("objects.json");
    std::fs::write(&path, objects.to_string())?;
    plane.kubectl(&["create", "-f", &path.to_string_lossy()])?;
    Ok(())
}

/// The JSON output of `kubectl get`.
pub(crate) fn get(plane: &ControlPlane, what: &[&str]) -> Result<Value> {
    let text = plane.kubectl(&[&["get", "-o", "json"], what].concat())?;
    serde_json::from_str(&text).context("kubectl printed no JSON")
}

/// Waits until `is_so` returns true.
pub(crate) fn wait(
    what: &str,
    limit: Duration,
    mut is_so: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let begun = Instant::now();
    while !is_so()? {
        ensure!(
            begun.elapsed() < limit,
            "not within {} s: {what}",
            limit.as_secs()
        );
        thread::sleep(Duration::from_secs(1));
    }
    Ok(())
}
