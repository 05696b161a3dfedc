//! The record on a fenced Node: who fenced it, why, when and how.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::machine::Machine;

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
}

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
    use super::*;

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
}
