#!/usr/bin/env bash
# The core and the floors above it up to schedulers on a system beside POSIX: core_elsewhere_test.sh ROOT SYSTEM SOURCE...
# The sources are those of these floors; the system's own are added. In TAP: a line for each program, all of which are tests elsewhere too.
#
#   wasi       compiled by clang for WebAssembly with wasi-libc, run by node. One thread.
#   windows    compiled by gcc of mingw-w64 for Windows of 64 bits, run by wine.
set -u
export LC_ALL=C
root=$1 system=$2
shift 2
scratch=$(mktemp -d)
finish() {
    [ ! -d "$scratch/wine" ] || wineserver -k >/dev/null 2>&1 # (that of this folder)
    rm -rf "$scratch"
}
trap finish EXIT
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
own="src/system/absent.c src/system/platform_$system.c"
libraries=

case $system in
wasi)
    compiler=(clang --target=wasm32-wasi)
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
windows)
    compiler=(x86_64-w64-mingw32-gcc)
    tests="$tests schedule/several_threads"
    libraries=-lsynchronization
    suffix=.exe
    export WINEPREFIX=$scratch/wine WINEDEBUG=-all
    runner=(wine)
    ;;
*) skip "there is no test of $system" ;;
esac
command -v "${compiler[0]}" >/dev/null || skip "${compiler[0]} is not installed"
echo 'int main(void) { return 0; }' >"$scratch/empty.c"
"${compiler[@]}" "$scratch/empty.c" -o "$scratch/empty$suffix" >"$scratch/output" 2>&1 ||
    skip "${compiler[*]} links no program: $(head -n 1 "$scratch/output")"
# Without a runner programs are compiled only.
not_run=
if ! command -v "${runner[0]}" >/dev/null; then
    not_run="${runner[0]} is not installed"
elif ! timeout 200 "${runner[@]}" "$scratch/empty$suffix" >"$scratch/output" 2>&1; then # (wine makes its folder first)
    not_run="programs for $system do not run here: $(head -n 1 "$scratch/output")"
fi

number=0 failed=0
result() { # STATUS NAME; the output is in $scratch/output
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2${3-}"
    else
        sed 's/^/# /' "$scratch/output" | head -n 30
        echo "not ok $number - $2"
        failed=1
    fi
}

mkdir "$scratch/library" "$scratch/include"
ln -s "$root/tests/bare_metal/include/cmocka.h" "$scratch/include/"
ln -s "$root/tests/bare_metal/board.h" "$scratch/"
flags=(-std=gnu11 -O1 -Wall -Wextra -Werror -Iinclude)
sources=0 status=0
for source in "$@" $own; do
    name=${source##*src/}
    "${compiler[@]}" "${flags[@]}" -c "src/$name" -o "$scratch/library/${name//\//_}.o" \
        >"$scratch/one" 2>&1 || { status=1 && cat "$scratch/one"; } >>"$scratch/output"
    sources=$((sources + 1))
done
result $status "$sources sources of the library compile for $system"

if [ "$system" = windows ]; then
    for header in core run_loop spawn strand thread_pool fork join parallel token_bucket sim_loop; do
        echo "#include \"bide/$header.h\""
    done >"$scratch/headers.c"
    status=0
    "${compiler[@]}" "${flags[@]}" -M "$scratch/headers.c" >"$scratch/output" 2>&1 || status=1
    ! grep -oE '[^ ]*/(pthread|windows|sys/[a-z]*socket)\.h' "$scratch/output" >"$scratch/one" || status=1
    cat "$scratch/one" >"$scratch/output"
    result $status "their headers need neither pthread.h nor windows.h nor sys/socket.h"

    # What is not supported is refused by its name.
    for refused in "-U_WIN64:Windows of 32 bits" "-D_MSC_VER=1940 -U__GNUC__:MSVC's C mode"; do
        status=0
        # shellcheck disable=SC2086 # a list of options
        "${compiler[@]}" "${flags[@]}" ${refused%%:*} -fsyntax-only "$scratch/headers.c" >"$scratch/output" 2>&1 && status=1
        grep -q "error.*bide: ${refused#*:} is not supported" "$scratch/output" || status=1
        result $status "${refused#*:} is refused"
    done
fi

# (The cases are run by the cmocka of the tests on bare metal, which needs a C compiler alone.)
cases=0
for test in $tests; do
    status=0
    rm -f "$scratch/test.o" "$scratch/test$suffix"
    {
        "${compiler[@]}" "${flags[@]}" -DTESTING_HOSTED=0 -I"$scratch/include" -Itests \
            "tests/${test}_test.c" -c -o "$scratch/test.o" &&
            "${compiler[@]}" "${flags[@]}" tests/bare_metal/host.c "$scratch/test.o" "$scratch"/library/*.o \
                $libraries -o "$scratch/test$suffix" &&
            { [ -n "$not_run" ] || timeout 200 "${runner[@]}" "$scratch/test$suffix"; }
    } >"$scratch/output" 2>&1 || status=$?
    passed=$(grep -c '^ok ' "$scratch/output")
    cases=$((cases + passed))
    if [ -n "$not_run" ]; then
        result $status "${test#*/} compiles" " # SKIP $not_run"
        continue
    fi
    [ "$passed" -gt 0 ] || status=1
    result $status "${test#*/}: $passed cases"
done
echo "# $system: $sources sources compiled, $number results, $cases cases passed"
echo "1..$number"
exit $failed
