#!/usr/bin/env bash
# Updates a node's packages in a night in which nightly-snapshot.sh runs too. If one of them holds the node, the other
# does not touch it.
#
#     nightly-update.sh NODE
#
# Updates are not urgent: if the node is already locked, it skips this night.
#
# Exit codes: 0 done, or skipped with a message. Anything else is a failure.
set -euo pipefail

node=${1:?usage: nightly-update.sh NODE}
# Each job needs a name of its own: two jobs with the same name would count as one holder.
host=$(uname -n)
export KUBECTL_MAINT_HOLDER="nightly-update@$host"

code=0
lock_id=$(kubectl maint acquire "$node" --duration 1h -m "nightly update" -o lock-id) || code=$?
case $code in
0) ;;
3 | 4)
    echo "no update of $node tonight" >&2
    exit 0
    ;;
*) exit "$code" ;;
esac
trap 'kubectl maint release "$node" --lock-id "$lock_id" || true' EXIT

# The lock expires after an hour. End the work before that, because it must not continue without the lock.
timeout --kill-after=60 55m ssh -n -o BatchMode=yes "$node" sudo apt-get --quiet --yes dist-upgrade
