#!/usr/bin/env bash
# Trims a node's disks, and reports how it went. The node is given back as soon as nothing happens on it any more, and
# the report takes its time; the trap gives it back where a step before fails.
#
#     trim.sh NODE
#
# A release of what is free already is done: 0. So the trap need not know how far the script came. And with the lock id it
# releases this very acquisition and no other, also where somebody of the same name took the node meanwhile.
#
# Exit codes: 0 done; 3 somebody else has the node, and nothing was done; 130 interrupted. Anything else: a step failed.
set -euo pipefail

node=${1:?usage: trim.sh NODE}

lock_id=$(kubectl maint acquire "$node" --duration 20m -m "disks are trimmed" -o lock-id)
# Whatever the release says, the script ends with its own code.
trap 'kubectl maint release "$node" --lock-id "$lock_id" || true' EXIT

report=$(timeout 15m ssh -n -o BatchMode=yes "$node" sudo fstrim --all --verbose)
kubectl maint release "$node" --lock-id "$lock_id"

logger --tag trim "$node: $report"
