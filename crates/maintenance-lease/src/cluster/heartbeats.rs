//! The Leases that kubelets renew as heartbeats, as far as they are read.
//!
//! Field numbers are those of `generated.proto` in `k8s.io/api/coordination/v1`.

use prost::Message;
use serde::Deserialize;

use super::encoded::Encoded;
use super::error::ApiError;
use super::wire;
use crate::protocol::Instant;

/// The heartbeat of a kubelet: its Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletLease {
    /// The name of the Lease, which is that of the node.
    pub node: String,
    /// When the kubelet renewed it, by its own clock. A time that can't be read is [`Instant::UNREADABLE`].
    pub renewed: Option<Instant>,
    /// For how many seconds.
    pub duration_seconds: Option<u32>,
}

impl KubeletLease {
    /// Reads the Lease.
    ///
    /// # Errors
    /// If it is something else.
    pub fn read(lease: Encoded<'_>) -> Result<Self, ApiError> {
        lease.read::<Self, JsonLease, LeaseMessage>()
    }
}

#[derive(Deserialize)]
struct JsonLease {
    metadata: JsonMetadata,
    #[serde(default)]
    spec: JsonSpec,
}

#[derive(Deserialize)]
struct JsonMetadata {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonSpec {
    renew_time: Option<serde_json::Value>,
    lease_duration_seconds: Option<i64>,
}

impl From<JsonLease> for KubeletLease {
    fn from(lease: JsonLease) -> Self {
        let JsonSpec {
            renew_time,
            lease_duration_seconds: seconds,
        } = lease.spec;
        // An invalid time in one of them must not fail the whole list.
        let renewed = renew_time.map(|time| time.as_str().map_or(Instant::UNREADABLE, wire::parse));
        Self {
            node: lease.metadata.name,
            renewed,
            duration_seconds: seconds.and_then(|seconds| seconds.try_into().ok()),
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct LeaseMessage {
    #[prost(message, required, tag = "1")]
    metadata: MetadataMessage,
    #[prost(message, required, tag = "2")]
    spec: SpecMessage,
}

#[derive(Clone, PartialEq, Message)]
struct MetadataMessage {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct SpecMessage {
    #[prost(int32, optional, tag = "2")]
    lease_duration_seconds: Option<i32>,
    #[prost(message, optional, tag = "4")]
    renew_time: Option<MicroTime>,
}

/// It has no fields if it is not set.
#[derive(Clone, Copy, PartialEq, Message)]
struct MicroTime {
    #[prost(int64, optional, tag = "1")]
    seconds: Option<i64>,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

impl From<LeaseMessage> for KubeletLease {
    fn from(lease: LeaseMessage) -> Self {
        let LeaseMessage { metadata, spec } = lease;
        let renewed = spec.renew_time;
        let seconds = spec.lease_duration_seconds;
        Self {
            node: metadata.name,
            renewed: renewed.and_then(|time| Some(wire::instant(time.seconds?, time.nanos))),
            duration_seconds: seconds.and_then(|seconds| seconds.try_into().ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(seconds: Option<i64>, duration: Option<i32>) -> KubeletLease {
        let lease = LeaseMessage {
            metadata: MetadataMessage {
                name: "worker-1".to_owned(),
            },
            spec: SpecMessage {
                lease_duration_seconds: duration,
                renew_time: Some(MicroTime {
                    seconds,
                    nanos: 7_000_999,
                }),
            },
        };
        KubeletLease::read(Encoded::Protobuf(&lease.encode_to_vec())).expect("a Lease")
    }

    #[test]
    fn a_time_is_unset_or_unreadable_in_both_encodings() {
        let read = |spec: &str| {
            let lease = format!(r#"{{"metadata":{{"name":"worker-1"}},"spec":{spec}}}"#);
            KubeletLease::read(Encoded::Json(lease.as_bytes())).expect("a Lease")
        };
        let json = |time: &str, duration: &str| {
            read(&format!(
                r#"{{"renewTime":{time},"leaseDurationSeconds":{duration}}}"#
            ))
        };
        let set = Instant::from_micros(5_007_000);
        assert_eq!(message(Some(5), Some(40)).renewed, Some(set));
        assert_eq!(
            message(Some(5), Some(40)),
            json(r#""1970-01-01T00:00:05.007000Z""#, "40")
        );
        assert_eq!(message(None, None), json("null", "null"));
        assert_eq!(message(None, None), read("{}"));
        let unreadable = message(Some(i64::MAX), Some(-1));
        assert_eq!(unreadable.renewed, Some(Instant::UNREADABLE));
        assert_eq!(unreadable, json(r#""9999-12-31T23:59:59.000000Z""#, "-1"));
        assert_eq!(
            KubeletLease::read(Encoded::Protobuf(b"")).expect("a Lease"),
            KubeletLease {
                node: String::new(),
                renewed: None,
                duration_seconds: None,
            }
        );
        assert!(KubeletLease::read(Encoded::Protobuf(b"\xff")).is_err());
        assert!(KubeletLease::read(Encoded::Json(b"{}")).is_err());
    }
}
