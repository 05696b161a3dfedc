#!/usr/bin/env bash
# Reboots a node under its lock: drains it, reboots it by ssh, waits until it is back, and uncordons it.
#
#     reboot.sh NODE
#
# After a failure, run it again. It continues where the last run ended, and does not reboot a node twice.
#
# Exit codes: 0 the node is back. 3 you already hold the lock, or it was lost between two steps. 4 somebody else held it
# for the whole wait. 5 the lock was lost. 130 interrupted. Anything else: a step failed, with a message.
# After a failure, the lock is released. If the node was cordoned by then, it stays cordoned.
set -euo pipefail

node=${1:?usage: reboot.sh NODE}
waiting=${WAITING:-1h}  # for the node to be unlocked
draining=${DRAINING:-15m}
booting=${BOOTING:-900} # seconds

# Everything below runs under the lock of the node. Without the lock, the script runs itself again under it.
# --take-expired: an earlier run may have been killed. The checks below show what it left.
if [ "${MAINT_NODE-}" != "$node" ]; then
    exec kubectl maint with "$node" --take-expired --wait --timeout "$waiting" -m "${REASON:-reboot}" -- "$BASH" "$0" "$@"
fi

# Annotation with the boot ID at the time of the cordon. A later run can see from it how far this one came.
mark=reboot.example.com/from-boot

on_node() { ssh -n -o BatchMode=yes -o ConnectTimeout=10 "$node" "$@"; }
still_ours() { kubectl maint verify --quiet "$node"; }
get() { kubectl get node "$node" -o jsonpath="$1"; }
# Fails if it is unknown: an empty boot ID would look like another boot.
boot_id() {
    get '{.status.nodeInfo.bootID}' | grep . || {
        echo "error: the boot ID of node/$node is not known" >&2
        return 1
    }
}

still_ours
cordoned=$(get '{.spec.unschedulable}')
before=$(get "{.metadata.annotations.${mark//./\\.}}")
if [ "$cordoned" = true ] && [ -z "$before" ]; then
    echo "error: node/$node was cordoned by somebody else: ask them, or kubectl uncordon $node" >&2
    exit 1
fi
if [ "$cordoned" != true ]; then
    before=$(boot_id)
    kubectl annotate --overwrite node "$node" "$mark=$before"
fi

now=$(boot_id)
if [ "$now" = "$before" ]; then
    on_node true # fail here rather than after the drain
    kubectl drain "$node" --ignore-daemonsets --delete-emptydir-data --timeout="$draining"
    still_ours
    # 255: the connection may end with the node.
    on_node sudo systemctl reboot || [ $? = 255 ]
    end=$((SECONDS + booting))
    until now=$(boot_id) && [ "$now" != "$before" ]; do
        if [ "$SECONDS" -ge "$end" ]; then
            echo "error: node/$node did not come back in $booting seconds" >&2
            exit 1
        fi
        sleep 5
    done
fi
kubectl wait --for=condition=Ready "node/$node" --timeout="${booting}s"

still_ours
kubectl uncordon "$node"
kubectl annotate node "$node" "$mark-"
