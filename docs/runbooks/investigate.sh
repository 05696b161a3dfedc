#!/usr/bin/env bash
# Opens a shell in which a node is yours, to look for what is wrong with it: nobody reboots or drains it meanwhile.
#
#     investigate.sh NODE WHY…
#
# The shell runs on this machine, and what is on the node is an ssh away. When the shell ends, the node is free again. What
# takes longer than a shell is a hold, once the shell was left: kubectl maint hold NODE -m WHY
#
# Exit codes: that of the shell's last command; 3 somebody else has the node, and is named; 5 the lock was lost, and the
# shell was ended.
set -euo pipefail

node=${1:?usage: investigate.sh NODE WHY…}
shift
why=$*

echo "a shell on this machine; then: ssh $node" >&2
exec kubectl maint with "$node" -m "${why:?usage: investigate.sh NODE WHY…}" -- bash
