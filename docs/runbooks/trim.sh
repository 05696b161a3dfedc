#!/usr/bin/env bash
# Trims a node's disks, and reports the result. The node is released as soon as the work on it is done, because the report
# takes some time. The trap releases it if an earlier step fails.
#
#     trim.sh NODE
#
# A release of a free node succeeds with 0, so the trap need not know how far the script came. With the lock id, it
# releases this acquisition only, even if somebody acquired the node under the same name in the meantime.
#
# Exit codes: 0 done; 3 the node is already locked, by somebody else or by you; nothing was done; 130 interrupted.
# Anything else: a step failed.
set -euo pipefail

node=${1:?usage: trim.sh NODE}

lock_id=$(kubectl maint acquire "$node" --duration 20m -m "disks are trimmed" -o lock-id)
# The script ends with its own exit code, no matter what the release returns.
trap 'kubectl maint release "$node" --lock-id "$lock_id" || true' EXIT

report=$(timeout 15m ssh -n -o BatchMode=yes "$node" sudo fstrim --all --verbose)
kubectl maint release "$node" --lock-id "$lock_id"

logger --tag trim "$node: $report"
