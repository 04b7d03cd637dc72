#!/bin/sh
# gdb's commands for coroutines (scripts/gdb/bide.py), in a program that is stopped and in its core file, as gcc and
# clang compile it, with and without optimisation and debug information: gdb_test.sh ROOT. Prints a line a case, in TAP.
# By the compilers that BIDE_COMPILERS names, and then neither in standard C nor without debug information, or both;
# with the library BIDE_LIBRARY, or one compiled alike.
set -u
root=$1
cd "$root" || exit 1
if ! command -v gdb >/dev/null || ! gdb -nx -batch -ex 'python print(1)' >/dev/null 2>&1; then
    echo "skipped: gdb is not installed, or has no Python"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export LC_ALL=C
source=tests/inspect/chains.c
cases=0
failures=0

line() { # MARK
    grep -n "/\* line: $1 \*/" $source | cut -d: -f1
}

# A task to a line, sorted, without addresses and directories; the rest is unchanged.
normal() {
    sed -e 's/0x[0-9a-f]*/ADDRESS/g' -e 's| at [^ ]*/| at |' |
        awk '/^task |^  #/ { if (/^task / && joined != "") print joined
                 joined = /^task / ? $0 : joined "|" $0; next }
             { if (joined != "") print joined; joined = ""; print }
             END { if (joined != "") print joined }' | sort
}

check() { # NAME EXPECTED PRINTED
    cases=$((cases + 1))
    if diff "$2" "$3" >"$folder/difference"; then
        echo "ok $cases - $1"
    else
        failures=$((failures + 1))
        echo "not ok $cases - $1"
        sed 's/^/# /' "$folder/difference"
    fi
}

waiting="  #0 leaf_body at chains.c:$(line leaf) waiting for bide_event_wait
  #1 branch_body at chains.c:$(line branch)
  #2 trunk_body at chains.c:$(line trunk)"
{
    echo "task ADDRESS trunk_body in the garden: waiting for bide_event_wait"
    echo "$waiting"
    start=$(grep -n '^bide_coroutine(running_body)' $source | cut -d: -f1)
    echo "task ADDRESS runner_body: running"
    echo "  #0 running_body at chains.c:$start (running)"
    echo "  #1 runner_body at chains.c:$(line runner)"
    echo "task ADDRESS leaf_body: not started"
    for body in locker:mutex_lock taker:semaphore_acquire receiver:channel_recv; do
        echo "task ADDRESS ${body%:*}_body in the garden: waiting for bide_${body#*:}"
        echo "  #0 ${body%:*}_body at chains.c:$(line "${body%:*}") waiting for bide_${body#*:}"
    done
    echo "6 tasks"
} | normal >"$folder/tasks"
root_line=$(grep -n 'bide_point root_at_await = ' src/coroutine/root.c | cut -d: -f1)
{
    echo "$waiting"
    echo "  #3 bide_root at root.c:$root_line"
} | normal >"$folder/chain"
{
    echo "  #0 running_body at chains.c:$(line running) (running)"
    echo "  #1 runner_body at chains.c:$(line runner)"
    echo "  #2 bide_root at root.c:$root_line"
} | normal >"$folder/own"
echo "bide: there is no memory at ADDRESS" >"$folder/nothing"
cat >"$folder/values" <<END
event: not set, 1 waiting = {[0] = leaf_body at chains.c:$(line leaf)}
finished: set
mutex: locked with the key at ADDRESS, 1 waiting = {[0] = locker_body at chains.c:$(line locker)}
idle_mutex: free
semaphore: 1 permit, 1 waiting = {[0] = taker_body at chains.c:$(line taker)}
channel: 0 of 4, 1 waiting = {[0] = receiver_body at chains.c:$(line receiver)}
half_full: 1 of 2, closed
spsc: 5 of 8, closed = {[0] = 12, [1] = 13, [2] = 14, [3] = 15}
mpmc: 5 of 6 = {[0] = 12, [1] = 13, [2] = 14, [3] = 15}
segments: 5, closed = {[0] = 12, [1] = 13, [2] = 14, [3] = 15}
no_segments: 0
counted: 5, closed = {[0] = 12, [1] = 13, [2] = 14, [3] = 15}
linked: 5 = {[0] = 12, [1] = 13, [2] = 14, [3] = 15}
loop: 1 ready
trunk: trunk_body at chains.c:$(line trunk), waiting for branch_body
leaf: leaf_body at chains.c:$(line leaf), waiting for bide_event_wait
END

# Runs gdb's commands and splits their output.
commands() { # NAME GDB-ARGUMENT...
    name=$1
    shift
    timeout 120 gdb -nx -batch "$@" -ex 'source scripts/gdb/bide.py' \
        -ex 'echo @tasks\n' -ex 'bide tasks' \
        -ex 'echo @chain\n' -ex 'bide bt trunk.branch.leaf' \
        -ex 'echo @own\n' -ex 'bide bt' \
        -ex 'echo @nothing\n' -ex 'bide bt 16' -ex 'echo @values\n' \
        -ex 'printf "event: "' -ex 'output event' -ex 'printf "\nfinished: "' -ex 'output finished' \
        -ex 'printf "\nmutex: "' -ex 'output mutex' -ex 'printf "\nidle_mutex: "' -ex 'output idle_mutex' \
        -ex 'printf "\nsemaphore: "' -ex 'output semaphore' -ex 'printf "\nchannel: "' -ex 'output channel.channel' \
        -ex 'printf "\nhalf_full: "' -ex 'output half_full.channel' \
        -ex 'printf "\nspsc: "' -ex 'output spsc' -ex 'printf "\nmpmc: "' -ex 'output mpmc' \
        -ex 'printf "\nsegments: "' -ex 'output segments' -ex 'printf "\nno_segments: "' -ex 'output no_segments' \
        -ex 'printf "\ncounted: "' -ex 'output counted' -ex 'printf "\nlinked: "' -ex 'output linked' \
        -ex 'printf "\nloop: "' -ex 'output loop' \
        -ex 'printf "\ntrunk: "' -ex 'output trunk.task.frame' \
        -ex 'printf "\nleaf: "' -ex 'output trunk.branch.leaf->task.frame' \
        -ex 'echo \n@end\n' >"$folder/printed" 2>&1
    for part in $parts; do
        sed -n "/^@$part\$/,/^@/p" "$folder/printed" | grep -v '^@' >"$folder/raw"
        if [ "$part" = values ]; then
            sed -e 's/0x[0-9a-f]*/ADDRESS/g' -e 's| at [^ ]*/| at |g' "$folder/raw" >"$folder/part"
        else
            normal <"$folder/raw" >"$folder/part"
        fi
        check "$name: $part" "$folder/$part" "$folder/part"
    done
}

# With BIDE_LIBRARY that is the library, without its debug information if it must have none.
build() { # COMPILER PROGRAM-FLAGS LIBRARY-FLAGS
    if [ -n "${BIDE_LIBRARY-}" ]; then
        cp "$BIDE_LIBRARY" "$folder/library.a"
        case " $3 " in
        *' -g '*) ;;
        *) strip -g "$folder/library.a" ;;
        esac
        # shellcheck disable=SC2086 # flags are lists of words
        (cd "$folder" && "$1" -std=c11 $2 -I"$root/include" "$root/$source" library.a -pthread -o program)
        return
    fi
    # shellcheck disable=SC2086 # flags are lists of words
    (cd "$folder" && "$1" -std=c11 $3 -I"$root/include" -c "$root"/src/base/*.c "$root"/src/coroutine/*.c \
        "$root"/src/sync/*.c "$root"/src/queue/*.c "$root"/src/schedule/*.c "$root"/src/system/*.c &&
        "$1" -std=c11 $2 -I"$root/include" "$root/$source" ./*.o -pthread -o program)
}

compilers=0
for cc in ${BIDE_COMPILERS:-gcc clang}; do
    command -v $cc >/dev/null || continue
    compilers=$((compilers + 1))
    # The arguments that the optimiser keeps are found, with debug information or without.
    for variant in '-O0 -g:-O0 -g:all' '-O2 -g:-O2 -g:all' '-O2 -g -DBIDE_STANDARD_C=1:-O2:all' '-O2:-O2:tasks'; do
        case "${BIDE_COMPILERS-}:$variant" in
        :* | *' -g:-O'[02]' -g:all') ;;
        *) continue ;;
        esac
        program_flags=${variant%%:*} rest=${variant#*:}
        parts=${rest#*:}
        [ "$parts" = all ] && parts='tasks chain own nothing values'
        build $cc "$program_flags" "${rest%:*}" || exit 1
        commands "$cc $program_flags, live" -ex 'break breakpoint' -ex run \
            -ex "generate-core-file $folder/core" "$folder/program"
        commands "$cc $program_flags, core" "$folder/program" "$folder/core"
    done
done
if [ $compilers -eq 0 ]; then
    echo "skipped: neither gcc nor clang is installed"
    exit 77
fi

cases=$((cases + 1))
if gdb -nx -batch -ex 'source scripts/gdb/bide.py' -ex 'bide help' 2>&1 | grep -q 'bide bt'; then
    echo "ok $cases - help"
else
    failures=$((failures + 1))
    echo "not ok $cases - help"
fi
echo "1..$cases"
[ $failures -eq 0 ]
