#!/usr/bin/env bash
# Stands in for kubectl, ssh and other programs that a runbook calls, by the name that it is called by. It writes down
# every step. At the step that STOP_AT means, by program and words, it stops without doing anything: its process id, and
# the id of who called it, are then its last words on stderr. The first step that FAIL_ONCE_AT means fails. kubectl is otherwise the real one; a reboot, wherever it is
# asked for, gives the node another boot ID and leaves it not ready. What ssh runs ends with the code NODE_SAYS. What
# has stopped ends with the process TESTS at the latest.
set -euo pipefail

step="${0##*/} $*"
echo "$step" >>"$STAGE/steps"
words=" $* "
is_at() { [[ -n $1 && ${0##*/} = "${1%% *}" && $words = *" ${1#* } "* ]]; }
if is_at "${STOP_AT-}"; then
    # The words are those of the program that stays: bash would take a signal that comes before it, and lose it.
    echo "stopped: $$ of $PPID" >"$STAGE/stopped-$$"
    exec tail --follow --pid="$TESTS" "$STAGE/stopped-$$" >&2
fi
if is_at "${FAIL_ONCE_AT-}" && mkdir "$STAGE/failed" 2>/dev/null; then
    echo "error: it fails this once" >&2
    exit 1
fi

reboot() {
    local boots
    boots=$(wc -l <"$STAGE/boots")
    echo "boot-$((boots + 1))" | tee "$STAGE/boot-id" >>"$STAGE/boots"
    "$KUBECTL" patch node "$NODE" --subresource=status --patch '{"status": {
        "nodeInfo": {"bootID": "'"$(cat "$STAGE/boot-id")"'"},
        "conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}]
    }}' >"$STAGE/reboot"
    echo "rebooted" >&2
}

case $step in
"kubectl "*) exec "$KUBECTL" "$@" ;;
"ssh "*" sudo systemctl reboot")
    reboot
    exit 255
    ;;
"systemctl reboot") reboot ;;
"ssh "*)
    echo "said by the node"
    exit "${NODE_SAYS:-0}"
    ;;
esac
