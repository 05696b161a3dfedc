#!/usr/bin/env bash
# Updates the machine that it runs on and reboots it, and keeps the lock of the node meanwhile: for a service of that
# machine, which starts it when there is something to do, and again at every boot.
#
#     own-update.sh           when there is something to do
#     own-update.sh resume    at every boot: finishes what was begun, if anything was
#
# The lock is an hour long and outlives the process, so the lock id is kept in a file. After the boot
# it is only worth what `renew --lock-id` says: 3 means that the machine was away for so long that somebody else came.
# It must not run twice at a time: the service manager sees to that.
#
# Exit codes: 0 done, rebooting, or nothing to resume; 3 somebody else has the node: hands off; 130 interrupted.
# Anything else: a step failed. What was begun is kept: run it again.
set -euo pipefail

node=${NODE:-$(uname -n)}
state=${STATE:-/var/lib/own-update}
this_boot=$(cat "${BOOT_ID:-/proc/sys/kernel/random/boot_id}")

# A name that nobody else has, and that stays the same over a boot.
export KUBECTL_MAINT_HOLDER="own-update@$node"

begun=$state/begun # lock id, and the boot in which it began
over=$state/over   # lock id, if nothing but the release is left to do
mkdir -p "$state"

# Writes a file that is whole or not there, also after a power cut.
keep() {
    (umask 077 && cat >"$1.new")
    sync "$1.new"
    mv "$1.new" "$1"
    sync "$state"
}

give_back() {
    # 3: it ran out before, and somebody else has the node by now.
    kubectl maint release "$node" --lock-id "$(cat "$over")" || [ $? = 3 ]
    rm -f "$begun"
    rm "$over"
}

if [ -e "$over" ]; then
    give_back
fi
if [ ! -e "$begun" ]; then
    if [ "${1-}" = resume ]; then
        exit 0
    fi
    cordoned=$(kubectl get node "$node" -o jsonpath='{.spec.unschedulable}')
    if [ "$cordoned" = true ]; then
        echo "error: node/$node was cordoned by somebody else: ask them, or kubectl uncordon $node" >&2
        exit 1
    fi
    # --reentry: a run that ended before it could keep the lock id has left the lock behind.
    lock_id=$(kubectl maint acquire "$node" --reentry --duration 1h -m "updates itself" -o lock-id)
    echo "$lock_id $this_boot" | keep "$begun"
fi

read -r lock_id boot <"$begun"
kubectl maint renew "$node" --lock-id "$lock_id" --duration 1h || {
    code=$?
    if [ "$code" = 3 ]; then
        echo "node/$node is not ours any more: left as it is, for whoever came" >&2
        rm "$begun"
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
echo "$lock_id" | keep "$over"
give_back
