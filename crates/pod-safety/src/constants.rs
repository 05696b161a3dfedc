//! Names and durations that Kubernetes defines, each with its source.

use maintenance_lease::protocol::Span;

/// How old a heartbeat may be if its Lease has no duration (the default of the kubelet's
/// `nodeLeaseDurationSeconds`).
pub const HEARTBEAT_DURATION: Span = Span::seconds(40);

/// How many times a kubelet renews its heartbeat within the duration of its Lease
/// (`nodeLeaseRenewIntervalFraction`).
pub const HEARTBEAT_RENEWALS: u32 = 4;

/// The namespace of the kubelets' heartbeats (`NamespaceNodeLease`).
pub const HEARTBEATS: &str = maintenance_lease::HEARTBEATS;

/// The taint that says that a node was shut down and nothing runs on it any more (`TaintNodeOutOfService`,
/// KEP-2268). Kubernetes then force-deletes its pods and detaches its volumes.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The value of the taint in Kubernetes' documentation.
pub const OUT_OF_SERVICE_VALUE: &str = "nodeshutdown";

/// How long the attach/detach controller waits before it detaches a volume from a node that is not ready,
/// once the pod is gone (`ReconcilerMaxWaitForUnmountDuration`).
pub const FORCED_DETACH: Span = Span::seconds(6 * 60);

/// The longest time that PodGC takes to delete pods whose node is gone. It is one period until PodGC notices,
/// the quarantine, and up to one period after that (`gcCheckPeriod` 20 s, `quarantineTime` 40 s).
pub const POD_GC: Span = Span::seconds(80);

/// If at least this percentage of a zone's nodes is not ready, the node lifecycle controller calls the zone
/// partially disrupted (`--unhealthy-zone-threshold`). It then taints its nodes for eviction slowly
/// (`--secondary-node-eviction-rate`), or not at all in a zone of up to 50 nodes
/// (`--large-cluster-size-threshold`). A zone without any ready node keeps the normal rate. If no zone has a
/// ready node, nothing is evicted anywhere.
pub const UNHEALTHY_ZONE_PERCENT: usize = 55;

/// A zone in which at most this many nodes are not ready is never called partially disrupted
/// (`ComputeZoneState`).
pub const SMALL_ZONE: usize = 2;

/// The zone of a node (`LabelTopologyZone`).
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// The region of a node (`LabelTopologyRegion`).
pub const REGION: &str = "topology.kubernetes.io/region";

/// A node with this label is not counted in its zone (`LabelNodeDisruptionExclusion`).
pub const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";

/// The finalizer that keeps a pod until its Job has counted it (`JobTrackingFinalizer`).
pub const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// The annotation of static pods, which come from a file of the kubelet and not from the API
/// (`MirrorPodAnnotationKey`).
pub const MIRROR: &str = "kubernetes.io/config.mirror";

/// The domain of the taints that medik8s operators put on a node while they work on it. Self Node Remediation
/// uses a key in that domain (`medik8s.io/remediation`). Fence Agents Remediation uses a key in a subdomain
/// (`remediation.medik8s.io/fence-agents-remediation`).
pub const MEDIK8S: &str = "medik8s.io";
