#!/usr/bin/env bash
# Collects evidence of a node that behaves oddly, with nobody there: for example from an alert.
#
#     collect.sh NODE DIRECTORY
#
# It puts the node on hold, because the evidence must still be there when somebody comes to look. A hold does not expire,
# even if this script is killed. The script ends the hold when everything was collected. After the time in --expect-until,
# `kubectl maint status` shows the hold as overdue, and somebody has to check.
#
# Exit codes: 0 collected; 3 somebody else holds the node, and nothing was done; 1, 130 and others: something is missing.
# The node then stays on hold until you run the script again, or: kubectl maint unhold NODE
set -euo pipefail

node=${1:?usage: collect.sh NODE DIRECTORY}
directory=${2:?usage: collect.sh NODE DIRECTORY}

# The job's own name, the same on every machine: anybody who runs it again can end the hold.
export KUBECTL_MAINT_HOLDER=collect

on_node() { ssh -n -o BatchMode=yes -o ConnectTimeout=10 "$node" "$@"; }

kubectl maint hold "$node" -m "evidence is being collected" --expect-until "${UNTIL:-1h}"
trap '[ "$?" = 0 ] || echo "error: something is missing: node/$node stays on hold" >&2' EXIT

mkdir -p "$directory"
kubectl describe node "$node" >"$directory/node.txt"
kubectl get pods --all-namespaces --field-selector "spec.nodeName=$node" -o yaml >"$directory/pods.yaml"
on_node sudo dmesg >"$directory/dmesg.txt"
on_node sudo journalctl --no-pager --since -2h >"$directory/journal.txt"
kubectl maint unhold "$node"
