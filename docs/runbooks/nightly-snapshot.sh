#!/usr/bin/env bash
# Snapshots a node's disk in a night in which nightly-update.sh runs too. If one of them holds the node, the other does
# not touch it.
#
#     nightly-snapshot.sh NODE
#
# It waits a while, because snapshots are short. After that, it skips this night.
#
# Exit codes: 0 done, or skipped with a message; 5 the lock was lost, and the snapshot is useless. Anything else is a
# failure.
set -euo pipefail

node=${1:?usage: nightly-snapshot.sh NODE}
skip=75 # instead of the lock's 3 and 4, because ssh passes on exit codes of the node

code=0
kubectl maint with "$node" --wait --timeout "${WAITING:-30m}" -E "$skip" -m "nightly snapshot" -- \
    ssh -n -o BatchMode=yes "$node" sudo /usr/local/sbin/snapshot || code=$?

if [ "$code" = "$skip" ]; then
    echo "no snapshot of $node tonight" >&2
    exit 0
fi
exit "$code"
