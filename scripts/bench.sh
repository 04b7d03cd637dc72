#!/usr/bin/env bash
# Runs one benchmark, or all of them: bench.sh [NAME]. A benchmark is the program build/bench/NAME,
# followed by bench/peers/NAME.sh if it has peers that are not C programs; or the script
# bench/NAME.sh, which runs the programs build/bench/NAME_*. JSON lines go to stdout, everything
# else to stderr.

set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1

known() {
    case $1 in
    */*) return 1 ;;
    esac
    scripted "$1" || { [ -f "build/bench/$1" ] && [ -x "build/bench/$1" ]; }
}

# True if the benchmark is a script, and one of its programs is built.
scripted() {
    local program
    [ -f "bench/$1.sh" ] || return 1
    case $1 in
    kv | fetch) [ ! -x "build/examples/$1" ] || return 0 ;; # (its program is an example)
    esac
    for program in "build/bench/$1"_*; do
        [ -f "$program" ] && [ -x "$program" ] && return 0
    done
    return 1
}

# True if the program is run by a script: it is named NAME_PROGRAM, and bench/NAME.sh exists.
of_a_script() {
    local name=$1
    while [ "$name" != "${name%_*}" ]; do
        name=${name%_*}
        [ ! -f "bench/$name.sh" ] || return 0
    done
    return 1
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
    if scripted "$name"; then
        bash "bench/$name.sh" </dev/null | only_json || {
            echo "bench.sh: $name failed" >&2
            status=1
        }
        return
    fi
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
for path in build/bench/* bench/*.sh; do
    name=${path##*/}
    name=${name%.sh}
    if [ ! -f "bench/$name.sh" ] && of_a_script "$name"; then
        continue
    fi
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
