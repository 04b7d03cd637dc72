#!/bin/sh
# The core on a Cortex-M3 without an operating system or a libc, in QEMU: bare_metal_test.sh ROOT SOURCE...
# The sources are those of the core.
#
#   1. It is built as a library, in both variants of the bodies, with nothing but the compiler.
#   2. Tests of the core, from the sources that are tests elsewhere too, are linked with it and run.
#   3. Programs that fail are seen to fail.
#
# Prints the cases as TAP, and the sizes of the library as comments.

set -u
root=$1
shift
cd "$root" || exit 1

tests='base/sequence coroutine/body coroutine/coroutine_type coroutine/create
    coroutine/generator coroutine/handle coroutine/inspect coroutine/scope coroutine/task
    coroutine/when queue/broadcast queue/oneshot queue/watch sync/auto_event sync/barging_mutex
    sync/condition sync/cyclic_barrier sync/event sync/event_close sync/latch sync/mutex
    sync/notify sync/once sync/rw_lock sync/semaphore sync/sequence_barrier
    sync/single_consumer_event sync/wait_group'
# FAILING (failing_test.c) and what is then to be read.
failures='1:failing_test.c:[0-9]*:.1.is.2 2:deadlock 3:ended.already 4:met.a.fault'

for tool in arm-none-eabi-gcc arm-none-eabi-size qemu-system-arm timeout; do
    if ! command -v $tool >/dev/null; then
        echo "skipped: $tool is not installed"
        exit 77
    fi
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# No cache, so no line of one; one thread, so no storage for each.
compile='arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -std=c11 -ffreestanding -nostdlib -Iinclude
    -DBIDE_CACHE_LINE=4 -DBIDE_THREAD_LOCAL= -Wall -Wextra -Wpedantic -Werror'
test_compile="$compile -Os -g -Itests -Itests/bare_metal/include"

library() { # NAME FLAG... ; the sources are in $sources
    library=$folder/$1
    mkdir "$library"
    shift
    for source in $sources; do
        $compile "$@" -c "$source" -o "$library/$(basename "$source" .c).o" || exit 1
    done
}

sizes() { # TITLE
    arm-none-eabi-size -t "$library"/*.o | awk -v title="$1" '
        NR > 1 {
            name = $6; sub(".*/", "", name); sub(".TOTALS.", "all of them", name)
            printf "# %s: %-28s %5d bytes of code, %3d of RAM\n", title, name, $1 + $2, $2 + $3
        }'
}

program() { # NAME SOURCE FLAG...
    name=$1 source=$2
    shift 2
    # (a loop that copies bytes is not to become a call of memcpy, which it may be itself)
    $test_compile "$@" -fno-tree-loop-distribute-patterns -Wl,-T,tests/bare_metal/board.ld \
        -Wl,--fatal-warnings tests/bare_metal/board.c "$source" "$library"/*.o \
        -o "$folder/$name" || exit 1
}

run() { # NAME
    timeout 60 qemu-system-arm -M lm3s6965evb -nographic -monitor none -serial none \
        -chardev stdio,id=host -semihosting-config enable=on,target=native,chardev=host \
        -kernel "$folder/$1" </dev/null 2>"$folder/errors"
}

# (named from the root, for their names are in the code)
sources=
for source in "$@"; do
    source=/$source
    sources="$sources src/${source##*/src/}"
done
for variant in gnu:0 standard:1; do
    flag=-DBIDE_STANDARD_C=${variant#*:}
    variant=${variant%:*}
    library "$variant-O2" -O2 "$flag"
    sizes "$variant, -O2"
    library "$variant-Os" -Os "$flag"
    sizes "$variant, -Os"

    program sizes tests/bare_metal/sizes_test.c "$flag"
    run sizes || failed=1

    for test in $tests; do
        name=$(basename "$test")
        program "$name" "tests/${test}_test.c" "$flag"
        echo "# $variant: $name"
        if ! run "$name"; then
            echo "# FAILED: $variant: $name"
            cat "$folder/errors"
            failed=1
        fi
    done

    for failure in $failures; do
        program failing tests/bare_metal/failing_test.c "$flag" -DFAILING="${failure%%:*}"
        run failing >"$folder/output"
        status=$?
        if [ $status -ne 1 ] || ! grep -q "${failure#*:}" "$folder/output"; then
            echo "# FAILED: $variant: failure $failure ended with status $status, and this:"
            sed 's/^/#     /' "$folder/output"
            failed=1
        fi
    done
done
exit $failed
