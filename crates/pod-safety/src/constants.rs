//! Names and lengths of time that Kubernetes fixes, each with where it does.

use maintenance_lease::protocol::Span;

/// How old a kubelet's heartbeat is at most for the kubelet to count as alive: the length of its Lease
/// (`nodeLeaseDurationSeconds` of the kubelet's configuration; it renews four times as often).
pub const HEARTBEAT_FRESH: Span = Span::seconds(40);

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

/// How long PodGC waits before it deletes pods whose node is gone, once it noticed: its period and its
/// quarantine (`gcCheckPeriod` 20 s, `quarantineTime` 40 s).
pub const POD_GC: Span = Span::seconds(60);

/// In a zone with more than this part of its nodes silent, Kubernetes suspects its own side and stops
/// evicting (`--unhealthy-zone-threshold` of kube-controller-manager).
pub const UNHEALTHY_ZONE_PERCENT: usize = 55;

/// The zone of a node (`LabelTopologyZone`).
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// Keeps a pod until its Job has counted it (`JobTrackingFinalizer`).
pub const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// On pods that come from a file of the kubelet, not from the API (`MirrorPodAnnotationKey`).
pub const MIRROR: &str = "kubernetes.io/config.mirror";

/// Where medik8s' node maintenance and remediation operators keep their Leases.
pub const MEDIK8S_LEASES: &str = "medik8s-leases";

/// The domain of the taints by which those operators say that they are at work on a node: their own, as of
/// Self Node Remediation (`medik8s.io/remediation`), or below it, as of Fence Agents Remediation
/// (`remediation.medik8s.io/fence-agents-remediation`).
pub const MEDIK8S: &str = "medik8s.io";
