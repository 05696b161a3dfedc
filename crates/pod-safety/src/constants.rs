//! Names and lengths of time that Kubernetes fixes, each with where it does.

use maintenance_lease::protocol::Span;

/// How old a heartbeat may be if its Lease does not say so (the default of the kubelet's
/// `nodeLeaseDurationSeconds`).
pub const HEARTBEAT_DURATION: Span = Span::seconds(40);

/// How often a kubelet renews its heartbeat within the time that it lasts (`nodeLeaseRenewIntervalFraction`).
pub const HEARTBEAT_RENEWALS: u32 = 4;

/// Where kubelets renew their heartbeats (`NamespaceNodeLease`).
pub const HEARTBEATS: &str = maintenance_lease::HEARTBEATS;

/// Says that a node was shut down and nothing runs on it any more (`TaintNodeOutOfService`, KEP-2268):
/// pods are then deleted by force and volumes detached.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The value that Kubernetes' documentation gives the taint.
pub const OUT_OF_SERVICE_VALUE: &str = "nodeshutdown";

/// How long the attach/detach controller waits before it detaches a volume from a node that is not
/// well, once the pod is gone (`ReconcilerMaxWaitForUnmountDuration`).
pub const FORCED_DETACH: Span = Span::seconds(6 * 60);

/// How long PodGC takes at most to delete pods whose node is gone: a period until it notices, its quarantine,
/// and the rest of a period after that (`gcCheckPeriod` 20 s, `quarantineTime` 40 s).
pub const POD_GC: Span = Span::seconds(80);

/// If this part of a zone's nodes or more are not ready, the node lifecycle controller calls the zone
/// partially disrupted (`--unhealthy-zone-threshold`). It then taints its nodes for eviction slowly
/// (`--secondary-node-eviction-rate`), or not at all in a zone of up to 50 nodes
/// (`--large-cluster-size-threshold`). A zone without any ready node keeps the normal rate, unless all
/// zones are like that: then nothing is evicted anywhere.
pub const UNHEALTHY_ZONE_PERCENT: usize = 55;

/// A zone in which only so many nodes are not ready is never called partially disrupted
/// (`ComputeZoneState`).
pub const SMALL_ZONE: usize = 2;

/// The zone of a node (`LabelTopologyZone`).
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// The region of a node (`LabelTopologyRegion`).
pub const REGION: &str = "topology.kubernetes.io/region";

/// A node with this label is not counted in its zone (`LabelNodeDisruptionExclusion`).
pub const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";

/// Keeps a pod until its Job has counted it (`JobTrackingFinalizer`).
pub const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// On pods that come from a file of the kubelet, not from the API (`MirrorPodAnnotationKey`).
pub const MIRROR: &str = "kubernetes.io/config.mirror";

/// The domain of the taints by which those operators say that they are at work on a node: their own, as of
/// Self Node Remediation (`medik8s.io/remediation`), or below it, as of Fence Agents Remediation
/// (`remediation.medik8s.io/fence-agents-remediation`).
pub const MEDIK8S: &str = "medik8s.io";
