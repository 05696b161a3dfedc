# What runs under the lock: says when it begins, that it lives, and when it ends, by the clock that goes on while the
# machine sleeps and that all processes share.
#   work.sh TIMES   so many signs of life
#   work.sh long    until $CHAOS_FINISH is there; what it starts in a session of its own does not end by being asked

mark() {
    read -r now _ </proc/uptime
    echo "$1 $CHAOS_RUN $now" >>"$CHAOS_JOURNAL"
}

case $1 in
stray)
    trap '' TERM HUP INT
    until [ -e "$CHAOS_FINISH" ]; do
        mark alive
        sleep 0.05
    done
    exit
    ;;
long)
    mark begin
    setsid /bin/sh "$0" stray &
    until [ -e "$CHAOS_FINISH" ]; do
        sleep 0.05
        mark alive
    done
    ;;
*)
    mark begin
    for _ in $(seq "$1"); do
        sleep 0.05
        mark alive
    done
    ;;
esac
mark end
