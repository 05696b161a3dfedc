#!/usr/bin/env bash
# Updates the machine that it runs on, reboots it, and keeps the lock of the node until the machine is back. It is meant
# for a service of that machine, which starts it when there is something to do, and again at every boot.
#
#     own-update.sh           when there is something to do
#     own-update.sh resume    at every boot: finishes what was begun, if anything was
#
# The lock lasts an hour and outlives the process, so the lock id is kept in a file. After the boot, `renew --lock-id`
# shows whether the lock still counts. 3 means that the machine was away for too long, and somebody else acquired the
# node. The script must not run twice at the same time: the service manager must ensure this.
#
# Exit codes: 0 done, rebooting, or nothing to resume; 3 somebody else has locked the node, so nothing is touched; 130
# interrupted. Anything else: a step failed. What was begun is kept: run it again.
set -euo pipefail

node=${NODE:-$(uname -n)}
state=${STATE:-/var/lib/own-update}
this_boot=$(cat "${BOOT_ID:-/proc/sys/kernel/random/boot_id}")

# A name that nobody else has, and that is the same after a reboot.
export KUBECTL_MAINT_HOLDER="own-update@$node"

in_progress=$state/in_progress         # lock id, and the boot in which it began
release_pending=$state/release_pending # lock id, if nothing but the release is left to do
mkdir -p "$state"

# Writes a file that is complete or absent, even after a power cut.
store() {
    (umask 077 && cat >"$1.new")
    sync "$1.new"
    mv "$1.new" "$1"
    sync "$state"
}

release_node() {
    # 3: the lock expired, and somebody else holds the node by now.
    kubectl maint release "$node" --lock-id "$(cat "$release_pending")" || [ $? = 3 ]
    rm -f "$in_progress"
    rm "$release_pending"
}

if [ -e "$release_pending" ]; then
    release_node
fi
if [ ! -e "$in_progress" ]; then
    if [ "${1-}" = resume ]; then
        exit 0
    fi
    cordoned=$(kubectl get node "$node" -o jsonpath='{.spec.unschedulable}')
    if [ "$cordoned" = true ]; then
        echo "error: node/$node was cordoned by somebody else: ask them, or kubectl uncordon $node" >&2
        exit 1
    fi
    # --reentry: an earlier run may have ended before it could store the lock id. Its lock is then still there.
    lock_id=$(kubectl maint acquire "$node" --reentry --duration 1h -m "updates itself" -o lock-id)
    echo "$lock_id $this_boot" | store "$in_progress"
fi

read -r lock_id boot <"$in_progress"
kubectl maint renew "$node" --lock-id "$lock_id" --duration 1h || {
    code=$?
    if [ "$code" = 3 ]; then
        echo "node/$node is not ours any more: somebody else holds it, so it is not changed" >&2
        rm "$in_progress"
    fi
    exit "$code"
}

if [ "$boot" = "$this_boot" ]; then
    kubectl drain "$node" --ignore-daemonsets --delete-emptydir-data --timeout=15m
    apt-get --quiet --yes dist-upgrade
    kubectl maint renew "$node" --lock-id "$lock_id" --duration 1h # from now on, for the reboot
    systemctl reboot
    exit 0
fi

kubectl wait --for=condition=Ready "node/$node" --timeout=15m
kubectl uncordon "$node"
echo "$lock_id" | store "$release_pending"
release_node
