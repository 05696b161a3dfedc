//! Stand-ins for CSI drivers.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::api::{Answer, Api};
use crate::plane::ControlPlane;

const PATH: &str = "/apis/storage.k8s.io/v1/volumeattachments";

/// How often it checks its VolumeAttachments.
const PERIOD: Duration = Duration::from_millis(300);

/// A CSI driver. Its attacher attaches every volume at once and reports that in the VolumeAttachment, which stays until
/// the volume is detached. Like a real driver, it does what the attach-detach controller requests, and refuses nothing.
///
/// The attacher ends when this is dropped.
#[derive(Debug)]
pub struct CsiDriver {
    name: String,
    life: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ControlPlane {
    /// Registers a driver with this name. Without `attach_required`, the control plane does not attach its volumes.
    ///
    /// # Errors
    /// If the API server refuses.
    pub fn csi_driver(&self, name: &str, attach_required: bool) -> Result<CsiDriver> {
        let driver =
            json!({"metadata": {"name": name}, "spec": {"attachRequired": attach_required}});
        self.api()
            .post("/apis/storage.k8s.io/v1/csidrivers", &driver)
            .with_context(|| format!("failed to register the driver {name}"))?;
        let attacher = Attacher {
            api: self.api().clone(),
            name: name.to_owned(),
        };
        let (life, dropped) = channel();
        let thread = thread::Builder::new()
            .name("attacher".to_owned())
            .spawn(move || attacher.run(&dropped))?;
        Ok(CsiDriver {
            name: name.to_owned(),
            life: Some(life),
            thread: Some(thread),
        })
    }
}

impl CsiDriver {
    /// The name of the driver.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for CsiDriver {
    fn drop(&mut self) {
        self.life = None;
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, its test has already failed.
            let _ = thread.join();
        }
    }
}

struct Attacher {
    api: Api,
    name: String,
}

impl Attacher {
    fn run(self, dropped: &Receiver<()>) {
        while dropped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
            let attachments = self.api.get(PATH).unwrap_or_default();
            let all = attachments["items"].as_array().into_iter().flatten();
            for attachment in all.filter(|one| one["spec"]["attacher"] == self.name) {
                // A failed request is retried in the next round.
                let _next_round = self.look_after(attachment);
            }
        }
    }

    /// Attaches or detaches a volume. A finalizer keeps the object until the volume is detached.
    fn look_after(&self, attachment: &Value) -> Answer {
        let meta = &attachment["metadata"];
        let path = format!("{PATH}/{}", meta["name"].as_str().unwrap_or_default());
        let finalizers = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
        if meta["deletionTimestamp"].is_string() {
            return self.api.patch(&path, &finalizers(Value::Null));
        }
        if meta["finalizers"].is_null() {
            let own = format!("external-attacher/{}", self.name.replace('.', "-"));
            self.api.patch(&path, &finalizers(json!([own])))?;
        }
        match &attachment["status"]["attached"] {
            Value::Bool(true) => Ok(Value::Null),
            _ => {
                let attached = json!({"status": {"attached": true}});
                self.api.patch(&format!("{path}/status"), &attached)
            }
        }
    }
}
