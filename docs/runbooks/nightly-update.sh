#!/usr/bin/env bash
# Updates a node's packages, in a night in which nightly-snapshot.sh runs too: whichever has the node, the other one
# stays away from it.
#
#     nightly-update.sh NODE
#
# Updates are no hurry: where somebody has the node, it is another night's turn.
#
# Exit codes: 0 done, or skipped, as it says. Anything else is a failure.
set -euo pipefail

node=${1:?usage: nightly-update.sh NODE}
# Jobs need names of their own: whoever has the same name would count as the same.
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

# An hour is all there is: what isn't done by then would be done without the lock.
timeout --kill-after=60 55m ssh -n -o BatchMode=yes "$node" sudo apt-get --quiet --yes dist-upgrade
