#!/usr/bin/env bash
# The core, the run loop and generators on a system beside POSIX: core_elsewhere_test.sh ROOT wasi SOURCE...
# The sources are those of the core. In TAP: a line for each program, all of which are tests elsewhere too.
#
#   wasi       compiled by clang for WebAssembly with wasi-libc, run by node. One thread.
set -u
root=$1 system=$2
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$root" || exit 1

skip() {
    echo "1..0 # SKIP $1"
    exit 0
}

tests='base/sequence coroutine/body coroutine/coroutine_type coroutine/create
    coroutine/generator coroutine/handle coroutine/inspect coroutine/scope coroutine/task
    coroutine/when queue/broadcast queue/oneshot queue/watch sync/auto_event sync/barging_mutex
    sync/condition sync/cyclic_barrier sync/event sync/event_close sync/latch sync/mutex
    sync/notify sync/once sync/rw_lock sync/semaphore sync/sequence_barrier
    sync/single_consumer_event sync/wait_group schedule/one_thread'
above='src/schedule/run_loop.c src/schedule/spawn.c src/schedule/strand.c src/schedule/leak_check.c'

case $system in
wasi)
    compiler=(clang --target=wasm32-wasi)
    above="$above src/system/platform_wasi.c"
    suffix=.wasm
    cat >"$scratch/run.mjs" <<'END'
import { readFile } from 'node:fs/promises';
import { argv, exit } from 'node:process';
import { WASI } from 'node:wasi';

const wasi = new WASI({ version: 'preview1', args: ['program'], env: {} });
const program = await WebAssembly.compile(await readFile(argv[2]));
exit(wasi.start(await WebAssembly.instantiate(program, { wasi_snapshot_preview1: wasi.wasiImport })));
END
    runner=(node --no-warnings "$scratch/run.mjs")
    ;;
*) skip "there is no test of $system" ;;
esac
for tool in "${compiler[0]}" "${runner[0]}"; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
done
echo 'int main(void) { return 0; }' >"$scratch/empty.c"
"${compiler[@]}" "$scratch/empty.c" -o "$scratch/empty$suffix" >"$scratch/output" 2>&1 ||
    skip "${compiler[*]} links no program: $(head -n 1 "$scratch/output")"
"${runner[@]}" "$scratch/empty$suffix" >"$scratch/output" 2>&1 ||
    skip "programs for $system do not run here: $(head -n 1 "$scratch/output")"

number=0 failed=0
result() { # STATUS NAME; the output is in $scratch/output
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        sed 's/^/# /' "$scratch/output" | head -n 30
        echo "not ok $number - $2"
        failed=1
    fi
}

mkdir "$scratch/library" "$scratch/include"
ln -s "$root/tests/bare_metal/include/cmocka.h" "$scratch/include/"
ln -s "$root/tests/bare_metal/board.h" "$scratch/"
flags=(-std=c11 -O1 -Wall -Wextra -Werror -Iinclude)
sources=0 status=0
for source in "$@" $above; do
    "${compiler[@]}" "${flags[@]}" -c "src/${source##*src/}" -o "$scratch/library/$(basename "$source" .c).o" \
        >"$scratch/one" 2>&1 || { status=1 && cat "$scratch/one"; } >>"$scratch/output"
    sources=$((sources + 1))
done
result $status "$sources sources of the library compile for $system"

# (The cases are run by the cmocka of the tests on bare metal, which needs a C compiler alone.)
cases=0
for test in $tests; do
    status=0
    {
        "${compiler[@]}" "${flags[@]}" -DTESTING_HOSTED=0 -I"$scratch/include" -Itests \
            "tests/${test}_test.c" -c -o "$scratch/test.o" &&
            "${compiler[@]}" "${flags[@]}" tests/bare_metal/host.c "$scratch/test.o" "$scratch"/library/*.o \
                -o "$scratch/test$suffix" &&
            timeout 60 "${runner[@]}" "$scratch/test$suffix"
    } >"$scratch/output" 2>&1 || status=$?
    passed=$(grep -c '^ok ' "$scratch/output")
    cases=$((cases + passed))
    [ "$passed" -gt 0 ] || status=1
    result $status "${test#*/}: $passed cases"
done
echo "# $system: $sources sources compiled, $number results, $cases cases passed"
echo "1..$number"
exit $failed
