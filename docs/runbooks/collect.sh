#!/usr/bin/env bash
# Collects what is known of a node that behaves oddly, with nobody there: from an alert, say.
#
#     collect.sh NODE DIRECTORY
#
# It puts the node on hold, because evidence must still be there when somebody comes to look: a hold has no end, also
# where this script is killed. It ends the hold when everything was collected. --until is when it should be over by then:
# past it, `kubectl maint status` shows the hold as overdue, and somebody has to look.
#
# Exit codes: 0 collected; 3 somebody else has the node, and nothing was done; 1, 130 and others: something is missing,
# and the node stays on hold until the script was run again, or: kubectl maint unhold NODE
set -euo pipefail

node=${1:?usage: collect.sh NODE DIRECTORY}
directory=${2:?usage: collect.sh NODE DIRECTORY}

# The job's own name, wherever it runs: whoever runs it again ends the hold.
export KUBECTL_MAINT_HOLDER=collect

on_node() { ssh -n -o BatchMode=yes -o ConnectTimeout=10 "$node" "$@"; }

kubectl maint hold "$node" -m "evidence is being collected" --until "${UNTIL:-1h}"
trap '[ "$?" = 0 ] || echo "error: something is missing: node/$node stays on hold" >&2' EXIT

mkdir -p "$directory"
kubectl describe node "$node" >"$directory/node.txt"
kubectl get pods --all-namespaces --field-selector "spec.nodeName=$node" -o yaml >"$directory/pods.yaml"
on_node sudo dmesg >"$directory/dmesg.txt"
on_node sudo journalctl --no-pager --since -2h >"$directory/journal.txt"
kubectl maint unhold "$node"
