#!/usr/bin/env bash
# Opens a shell in which a node is yours, to find out what is wrong with it. Nobody who uses the lock reboots or drains it
# in the meantime.
#
#     investigate.sh NODE WHY…
#
# The shell runs on this machine; use ssh to get to the node. When the shell ends, the node is released. If you need the
# node for longer, leave the shell and hold the node: kubectl maint hold NODE -m WHY
#
# Exit codes: that of the shell's last command; 3 the node is already locked, by somebody else or by you; nothing was
# done; 5 the lock was lost, and the shell was ended.
set -euo pipefail

node=${1:?usage: investigate.sh NODE WHY…}
shift
why=$*

echo "a shell on this machine; then: ssh $node" >&2
exec kubectl maint with "$node" -m "${why:?usage: investigate.sh NODE WHY…}" -- bash
