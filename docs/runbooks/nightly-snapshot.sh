#!/usr/bin/env bash
# Snapshots a node's disk, in a night in which nightly-update.sh runs too: whichever has the node, the other one stays
# away from it.
#
#     nightly-snapshot.sh NODE
#
# It can wait a while, since snapshots are short; after that, this night has none.
#
# Exit codes: 0 done, or skipped, as it says; 5 the lock was lost, and the snapshot is worth nothing. Anything else is a
# failure.
set -euo pipefail

node=${1:?usage: nightly-snapshot.sh NODE}
skip=75 # ssh passes codes of the node's on: of the lock's own, 3 and 4, this one is told apart

code=0
kubectl maint with "$node" --wait --timeout "${WAITING:-30m}" -E "$skip" -m "nightly snapshot" -- \
    ssh -n -o BatchMode=yes "$node" sudo /usr/local/sbin/snapshot || code=$?

if [ "$code" = "$skip" ]; then
    echo "no snapshot of $node tonight" >&2
    exit 0
fi
exit "$code"
