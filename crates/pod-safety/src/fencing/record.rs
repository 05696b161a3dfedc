//! The record on a fenced Node: who fenced it, why, when and how.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::machine::Machine;
use crate::removed::Removed;

/// The annotation on the Node.
pub const ANNOTATION: &str = "kubectl-maint.dev/fenced";

/// The record of a fencing, which is stored on the Node as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Who fenced it.
    pub who: String,
    /// The reason, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When it was fenced, in RFC 3339.
    pub when: String,
    /// How it is known that nothing runs on the node any more.
    pub how: How,
    /// `status.nodeInfo.bootID` of the Node when it was fenced. A different one means that the node was
    /// restarted since. Empty if the kubelet had not reported it.
    #[serde(rename = "bootID", default, skip_serializing_if = "String::is_empty")]
    pub boot_id: String,
    /// The Node's uid when it was fenced.
    pub node_uid: String,
    /// The lock id of the hold that fencing acquired. When the hold ends, the fencing ends. `None` if the
    /// node was already locked by a lock that fencing must not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<String>,
    /// The pods that move to other nodes, so that later runs can follow them. `None` if there were too many
    /// or the record was shortened.
    #[serde(
        default,
        deserialize_with = "known_pods",
        skip_serializing_if = "Option::is_none"
    )]
    pub removed: Option<Vec<Removed>>,
}

/// Parses the pods of a record. A later version may describe them differently; its record is still valid,
/// without the pods.
fn known_pods<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<Removed>>, D::Error> {
    let pods = Value::deserialize(from)?;
    Ok(serde_json::from_value(pods).ok())
}

/// The maximum number of recorded pods. All annotations of a Node together may have at most 256 KiB.
const RECORDED_PODS: usize = 250;

/// How it is known that nothing runs on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum How {
    /// The user confirmed that it is powered off. The text says how they know.
    PoweredOff(String),
    /// A program powered it off or cut it off, and reported success.
    Hook {
        /// The program. Its arguments are not recorded, because they may contain passwords and many users may
        /// read Nodes.
        program: String,
        /// The end of the program's output.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        output: String,
        /// The program cut the node off from the network or storage and left it running. A hook that reverses
        /// this can undo it. A node that was powered off only needs a restart.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        isolated: bool,
    },
}

/// How it is known that nothing runs on one particular machine any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// How it is known.
    pub how: How,
    /// The machine that it is about: the one that was passed to the hook, or that the user confirmed.
    pub of: Machine,
}

/// What happened to a node since it was fenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// It is a new Node with that name, and its boot id is different.
    NewNode,
    /// It was restarted.
    Restarted,
    /// The boot id is still the same. The Node may be new: a Node that was deleted and registered again says
    /// nothing about the machine.
    SameBoot,
    /// The kubelet did not report the boot id, then or now.
    Unknown,
}

impl Record {
    /// The same record with the pods that move to other nodes, if they are not too many.
    #[must_use]
    pub fn with_removed(self, pods: &[Removed]) -> Self {
        let removed = (pods.len() <= RECORDED_PODS).then(|| pods.to_vec());
        Self { removed, ..self }
    }

    /// The same record without optional data: the hook's output and the pods.
    #[must_use]
    pub fn shortened(mut self) -> Self {
        if let How::Hook { output, .. } = &mut self.how {
            output.clear();
        }
        self.removed = None;
        self
    }

    /// What happened to the node since it was fenced. `machine` is what its Node represents now.
    #[must_use]
    pub fn since(&self, machine: &Machine) -> Since {
        match (&*self.boot_id, &*machine.boot_id) {
            ("", _) | (_, "") => Since::Unknown,
            (then, now) if then == now => Since::SameBoot,
            _ if self.node_uid != machine.uid => Since::NewNode,
            _ => Since::Restarted,
        }
    }

    /// Parses the annotation's value; `None` if it is not a record of ours.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The annotation's value.
    ///
    /// # Panics
    /// Never, because a record has no values that JSON cannot represent.
    #[must_use]
    pub fn print(&self) -> String {
        serde_json::to_string(self).expect("strings print")
    }
}

#[cfg(test)]
impl Record {
    /// An example record for tests.
    pub(crate) fn example() -> Self {
        Self {
            who: "alice".to_owned(),
            why: None,
            when: "1970-01-01T00:00:05Z".to_owned(),
            how: How::PoweredOff("its lights are off".to_owned()),
            boot_id: "b".to_owned(),
            node_uid: "u".to_owned(),
            hold: None,
            removed: None,
        }
    }
}

impl How {
    /// Whether a program fenced the node.
    #[must_use]
    pub fn is_hook(&self) -> bool {
        matches!(self, Self::Hook { .. })
    }

    /// Whether the node was only cut off, so that its processes may still run.
    #[must_use]
    pub fn is_isolated(&self) -> bool {
        matches!(self, Self::Hook { isolated: true, .. })
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PoweredOff(how) => write!(f, "powered off: {how}"),
            Self::Hook {
                program,
                isolated: true,
                ..
            } => write!(f, "isolated with {program}"),
            Self::Hook { program, .. } => write!(f, "with {program}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::{Instant, Now};

    use super::*;
    use crate::taint::OutOfService;

    #[test]
    fn a_missing_boot_id_proves_nothing() {
        let record = |boot_id: &str| Record {
            boot_id: boot_id.to_owned(),
            ..Record::example()
        };
        for (then, uid, now, since) in [
            ("b", "u", "b", Since::SameBoot),
            ("b", "u", "c", Since::Restarted),
            ("b", "u", "", Since::Unknown),
            ("", "u", "b", Since::Unknown),
            ("", "u", "", Since::Unknown),
            ("", "v", "", Since::Unknown),
            ("", "v", "b", Since::Unknown),
            ("b", "v", "b", Since::SameBoot),
            ("b", "v", "c", Since::NewNode),
        ] {
            let machine = Machine {
                uid: uid.to_owned(),
                boot_id: now.to_owned(),
                provider_id: String::new(),
            };
            assert_eq!(record(then).since(&machine), since, "{then} {uid} {now}");
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = Record::example();
        let text = record.print();
        assert_eq!(
            text,
            r#"{"who":"alice","when":"1970-01-01T00:00:05Z","how":{"poweredOff":"its lights are off"},"bootID":"b","nodeUid":"u"}"#
        );
        assert_eq!(Record::parse(&text), Some(record.clone()));
        let hooked = Record {
            why: Some("no answer".to_owned()),
            how: How::Hook {
                program: "ipmitool".to_owned(),
                output: String::new(),
                isolated: false,
            },
            hold: Some("u.1.n".to_owned()),
            ..record
        };
        let text = hooked.print();
        assert!(text.contains(r#""hook":{"program":"ipmitool"}"#), "{text}");
        assert_eq!(Record::parse(&text), Some(hooked.clone()));
        let isolated = Record {
            how: How::Hook {
                program: "isolate".to_owned(),
                output: String::new(),
                isolated: true,
            },
            ..hooked.clone()
        };
        assert_eq!(Record::parse(&isolated.print()), Some(isolated));
        let unknown = Record {
            boot_id: String::new(),
            ..hooked
        };
        let text = unknown.print();
        assert!(!text.contains("bootID"), "{text}");
        assert_eq!(Record::parse(&text), Some(unknown));
        assert_eq!(Record::parse("yes"), None);
    }

    #[test]
    fn a_shorter_record_has_neither_output_nor_pods() {
        let record = |output: &str, removed| Record {
            how: How::Hook {
                program: "ipmitool".to_owned(),
                output: output.to_owned(),
                isolated: true,
            },
            removed,
            ..Record::example()
        };
        let complete = record("Chassis Power is off", Some(Vec::new()));
        assert_eq!(complete.shortened(), record("", None));
    }

    #[test]
    fn the_pods_that_move_are_recorded_unless_they_are_too_many() {
        let pod = serde_json::from_value(serde_json::json!({"metadata": {
            "namespace": "shop", "name": "web-7d4c-x", "uid": "u-1",
            "labels": {"pod-template-hash": "7d4c"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d4c", "uid": "c-1",
                "controller": true,
            }],
        }}));
        let now = Now::at(Instant::from_micros(5_000_000));
        let pod = [pod.expect("a pod")];
        let pods = Removed::by_fencing(&pod, &OutOfService::No, now);
        let record = Record::example();
        let text = record.clone().with_removed(&pods).print();
        let expected = r#""removed":[{"namespace":"shop","name":"web-7d4c-x","uid":"u-1","sameController":{"uid":"c-1","kind":"ReplicaSet","name":"web-7d4c","label":["pod-template-hash","7d4c"],"since":"1970-01-01T00:00:03Z"},"isExpected":true}]"#;
        assert!(text.contains(expected), "{text}");
        assert_eq!(
            Record::parse(&text).and_then(|it| it.removed),
            Some(pods.clone())
        );
        let later = Record::parse(&text.replace("ReplicaSet", "Rollout")).expect("a record");
        assert_eq!((later.who, later.removed), (record.who.clone(), None));
        let many = vec![pods[0].clone(); RECORDED_PODS + 1];
        assert_eq!(record.with_removed(&many).removed, None);
    }
}
