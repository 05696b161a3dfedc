#!/usr/bin/env bash
# Reboots a node while nobody else is at it: drains it, reboots it by ssh, waits until it is back, and uncordons it.
#
#     reboot.sh NODE
#
# Run again after a failure, it goes on where the last run ended: a node that was rebooted is not rebooted twice.
#
# Exit codes: 0 the node is back; 4 somebody else had it all the time; 3 or 5 the lock was lost meanwhile; 130
# interrupted. Anything else: a step failed, and said so. The node is then free for whoever looks after it, and still
# cordoned if it was already.
set -euo pipefail

node=${1:?usage: reboot.sh NODE}
waiting=${WAITING:-1h}  # for whoever has the node
draining=${DRAINING:-15m}
booting=${BOOTING:-900} # seconds

# Everything below runs under the lock of the node: without it, the script runs itself again with it.
if [ "${MAINT_NODE-}" != "$node" ]; then
    exec kubectl maint with "$node" --wait --timeout "$waiting" -m "${REASON:-reboot}" -- "$BASH" "$0" "$@"
fi

# A node that the script cordons carries the boot ID that it has by then, for a later run to know how far this one came.
mark=reboot.example.com/from-boot

on_node() { ssh -n -o BatchMode=yes -o ConnectTimeout=10 "$node" "$@"; }
still_ours() { kubectl maint verify --quiet "$node"; }
get() { kubectl get node "$node" -o jsonpath="$1"; }
# Fails where it is not known: nothing at all would pass for another boot.
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
    on_node true # better now than when it is drained
    kubectl drain "$node" --ignore-daemonsets --delete-emptydir-data --timeout="$draining"
    still_ours
    # The connection may end with the node: 255.
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
