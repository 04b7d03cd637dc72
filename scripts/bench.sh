#!/usr/bin/env bash
# Runs one benchmark, or all of them: bench.sh [NAME]. Each is build/bench/NAME, followed
# by bench/peers/NAME.sh where there are peers that are not C programs.
# JSON lines go to stdout, everything else to stderr.

set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1

known() {
    case $1 in
    */*) return 1 ;;
    esac
    [ -f "build/bench/$1" ] && [ -x "build/bench/$1" ]
}

# Keeps on stdout only the lines that are JSON objects.
only_json() {
    local line
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
        '{'*) printf '%s\n' "$line" ;;
        *) printf '%s\n' "$line" >&2 ;;
        esac
    done
}

status=0
run() {
    local name=$1
    "build/bench/$name" </dev/null | only_json || {
        echo "bench.sh: $name failed" >&2
        status=1
    }
    if [ -f "bench/peers/$name.sh" ]; then
        bash "bench/peers/$name.sh" </dev/null | only_json || {
            echo "bench.sh: the peers of $name failed" >&2
            status=1
        }
    fi
}

if [ $# -gt 0 ]; then
    if ! known "$1"; then
        echo "bench.sh: there is no benchmark '$1' in build/bench" >&2
        exit 2
    fi
    run "$1"
    exit "$status"
fi

ran=0
for path in build/bench/*; do
    name=${path##*/}
    if known "$name"; then
        run "$name"
        ran=$((ran + 1))
    fi
done
if [ "$ran" -eq 0 ]; then
    echo "bench.sh: no benchmark has been built in build/bench" >&2
    exit 2
fi
exit "$status"
