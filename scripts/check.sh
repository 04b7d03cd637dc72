#!/usr/bin/env bash
# Builds and tests every configuration, one after the other: check.sh [--long].
# The last line is "N passed, N failed, N skipped", over all of them.

set -u
cd "$(dirname "$0")/.." || exit 1

long=no
tests_on= # a command that says on which processors tests run
case ${1-} in
'') ;;
--long) long=yes ;;
*)
    echo "usage: scripts/check.sh [--long]" >&2
    exit 2
    ;;
esac

# Some tests make a process crash; writing its core can take longer than the test may.
ulimit -c 0

export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export MSAN_OPTIONS=halt_on_error=1:exit_code=99

# The parts of every configuration. In check-long the first two configurations compile the benchmarks too.
parts=(-Dtests=true -Dexamples=true -Dchecker=true)
benchmarks=
[ $long = no ] || benchmarks=-Dbenchmarks=true

passed=0 failed=0 skipped=0
output=$(mktemp)   # of the step that is running
failures=$(mktemp) # the failures of all of them, printed again at the end
trap 'rm -f "$output" "$output.times" "$failures"' EXIT

# On a stop request, let the running step end, then report the results so far.
stopped=no
trap 'stopped=yes' TERM INT

# Sanitizers of GCC 12 and Clang 14 cannot always place their shadow memory where the kernel randomises addresses
# widely, so they run without randomisation if it can be turned off. Some containers forbid this.
fixed=
if setarch "$(uname -m)" -R true 2>/dev/null; then
    fixed="setarch $(uname -m) -R"
fi

# QEMU 7.2 (Debian 12) runs 64-bit ARM on x86 such that a load can overtake an earlier store. This happens even if both
# are seq_cst, as a program of two threads shows. It cannot happen on one processor, so those tests run on the first
# one of ours.
one_processor="taskset -c $(taskset -pc $$ | sed 's/.*: *//; s/[-,].*//')"

# Sets seconds to the processor time of everything that has run so far.
used=0
processor_seconds() {
    local m s user system line
    times >"$output.times"
    { read -r line && read -r user system; } <"$output.times"
    seconds=0
    for line in "$user" "$system"; do
        m=${line%%m*} s=${line#*m}
        seconds=$((seconds + m * 60 + ${s%%.*}))
    done
}

# Adds to the totals, and ends the configuration that began at $begun.
report() { # NAME PASSED FAILED SKIPPED
    local seconds
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
    processor_seconds
    echo "   $1: $2 passed, $3 failed, $4 skipped, $((SECONDS - begun)) s ($((seconds - used)) s of processor time)"
    used=$seconds
}

# Configures and compiles; shows the output only if there are warnings or errors. If the array only_for has options for
# tests, builds only the programs that those tests need.
only_for=()
build() { # FOLDER CC CXX SETUP-OPTION...
    local folder=$1 cc=$2 cxx=$3 status=0 files=()
    shift 3
    {
        CC=$cc CXX=$cxx $wrap scripts/configure.sh "$folder" "${parts[@]}" "$@" &&
            if [ ${#only_for[@]} -gt 0 ]; then
                files=(--ninja-args "$(python3 scripts/test-targets.py "$folder" "${only_for[@]}")")
            fi &&
            $wrap meson compile -C "$folder" "${files[@]}"
    } >"$output" 2>&1 || status=$?
    if [ "$status" -ne 0 ] || grep -q 'warning:' "$output"; then
        cat "$output"
    fi
    return "$status"
}

# Runs the tests of a build directory and counts them; shows the output only of failures. If BIDE_SEEDS_FROM is a
# number, the tests that draw at random get a seed that follows from it and from the number of the run.
runs=0
run() { # NAME FOLDER TEST-OPTION...
    local name=$1 folder=$2 status=0 p=0 f=0 s=0
    runs=$((runs + 1))
    [ -z "${BIDE_SEEDS_FROM-}" ] || local -x BIDE_SEED=$((BIDE_SEEDS_FROM + runs))
    local log=$folder/meson-logs/testlog.json
    shift 2
    case $* in
    *--wrapper=valgrind*) log=$folder/meson-logs/testlog-valgrind.json ;; # meson's choice
    esac
    rm -f "$log"
    # shellcheck disable=SC2086 # $tests_on is a command, or nothing
    $wrap $tests_on meson test -C "$folder" --no-rebuild --quiet --print-errorlogs "$@" \
        >"$output" 2>&1 || status=$?
    if [ "$status" -ne 0 ]; then
        cat "$output"
    fi
    if [ -f "$log" ]; then
        read -r p f s < <(python3 scripts/count-tests.py "$log" "$failures" "$name") || f=1
    fi

    if [ "$stopped" = yes ]; then
        echo "   $name was stopped before its end"
    elif [ $((p + f + s)) -eq 0 ]; then
        echo "   $name: no test ran"
        f=1
    elif [ "$status" -gt 125 ] || { [ "$status" -ne 0 ] && [ $((f + s)) -eq 0 ]; }; then
        echo "   $name: meson test ended with status $status"
        f=$((f + 1))
    fi
    report "$name" "$p" "$f" "$s"
}

# Reports a configuration as skipped because something that it needs is missing.
skip() { # NAME REASON
    echo "   $2"
    report "$1" 0 0 1
}

# One configuration, from setup to count, without the long tests. In make check it leaves out the suites in $leave_out,
# and stress tests do the fraction $share of their rounds (tests/testing.h). In check-long it leaves out the suites in
# $leave_out_long.
leave_out='' share=1 leave_out_long=''
configuration() { # NAME FOLDER CC CXX SETUP-OPTION...
    local name=$1 folder=$2 cc=$3 begun=$SECONDS wrap=
    local tests=(--no-suite long) program suite only_for=()
    [ "$stopped" = no ] || return 0
    echo "== $name ($folder)"
    for program in "$cc" ${CC_LD:+"ld.$CC_LD"}; do
        if ! command -v "$program" >/dev/null; then
            skip "$name" "$program is not installed"
            return 0
        fi
    done
    # Tests that bring their own compilers run once, independently of the configuration. So do the scenarios of the
    # library, which the checker explores, not the processor.
    if [ "$folder" != build ]; then
        tests+=(--no-suite once --no-suite model)
    fi
    if [ $long = no ]; then
        for suite in $leave_out; do
            tests+=(--no-suite "$suite")
        done
        local -x BIDE_ROUNDS=$share
        only_for=("${tests[@]}")
    else
        for suite in $leave_out_long; do
            tests+=(--no-suite "$suite")
        done
        # (the first two build the benchmarks as well)
        [ -z "$leave_out_long" ] || [ "$folder" = build ] || only_for=("${tests[@]}")
    fi
    case $* in
    *b_sanitize*)
        wrap=$fixed
        tests+=(--timeout-multiplier 4)
        ;;
    esac
    case $* in
    *cross-file*) tests+=(--timeout-multiplier 4) ;; # an emulator runs them
    esac
    # System libraries are not instrumented: memory that they write would count as uninitialised.
    case $* in
    *b_sanitize=memory*) tests+=(--no-suite cxx --no-suite foreign) ;;
    esac
    shift
    if build "$@"; then
        run "$name" "$folder" "${tests[@]}"
    elif [ "$stopped" = no ]; then
        echo "   $name: the build failed" | tee -a "$failures"
        report "$name" 0 1 0
    fi
}

# One configuration for another processor, by the Debian cross compiler for TRIPLET. PROGRAM runs the tests: an
# emulator, or the C library's own loader. Tests that need zlib or bring compilers of their own are left out.
cross() { # NAME FOLDER TRIPLET PROGRAM
    local name=$1 triplet=$3 program=$4 begun=$SECONDS reason=
    [ "$stopped" = no ] || return 0
    if ! command -v "$triplet-gcc" >/dev/null; then
        reason="$triplet-gcc is not installed"
    elif ! command -v "$program" >/dev/null; then
        reason="$program is not installed"
    elif ! "$program" --version >/dev/null 2>&1; then
        reason="$program does not run here"
    elif ! scripts/cross-cmocka.sh "$triplet" >"$output" 2>&1; then
        reason="cmocka could not be made for it: $(tail -n 1 "$output")"
    fi
    if [ -n "$reason" ]; then
        echo "== $name ($2)"
        skip "$name" "$reason"
        return 0
    fi
    configuration "$name" "$2" "$triplet-gcc" "$triplet-g++" $optimised \
        --cross-file "cross/${triplet%%-*}.ini" \
        -Dpkg_config_path="$PWD/build/cross/$triplet/lib/pkgconfig"
}

# Runs tests in a build directory of an earlier configuration, in another way.
again() { # NAME FOLDER WRAP TEST-OPTION...
    local name=$1 folder=$2 begun=$SECONDS wrap=$3
    shift 3
    [ "$stopped" = no ] || return 0
    echo "== $name ($folder)"
    if build "$folder" gcc g++; then
        run "$name" "$folder" "$@"
    elif [ "$stopped" = no ]; then
        echo "   $name: the build failed" | tee -a "$failures"
        report "$name" 0 1 0
    fi
}

# All tests except tests of whole programs, which query the kernel about the process and its limits, and would see the
# emulator's; except the model checker's, whose stacks valgrind does not know; and except the translator's: they are
# scripts, of which it would see the shell, and a program that leaves its memory to the end of the process.
# Children that misuse the library on purpose end while threads of theirs run: memory of these threads is possibly
# lost, which is no error.
valgrind_tests() { # NAME FOLDER
    local begun=$SECONDS
    [ "$stopped" = no ] || return 0
    if ! command -v valgrind >/dev/null; then
        echo "== $1 ($2)"
        skip "$1" 'valgrind is not installed'
        return 0
    fi
    again "$1" "$2" '' --no-suite long --no-suite once --no-suite examples \
        --no-suite check --no-suite process --no-suite bidec \
        --timeout-multiplier 10 \
        --wrapper="valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite --suppressions=$PWD/scripts/valgrind.supp"
}

# Compiles for macOS, and prints which files are compiled, and which are left out.
compile_macos() {
    local begun=$SECONDS status=0
    [ "$stopped" = no ] || return 0
    echo '== macOS, compiled only'
    BIDEC=$PWD/build/tools/bidec ./scripts/compile-macos >"$output" 2>&1 || status=$?
    case $status in
    0)
        sed 's/^/   /' "$output"
        report 'macOS, compiled only' 1 0 0
        ;;
    77) skip 'macOS, compiled only' "$(cat "$output")" ;;
    *)
        tee -a "$failures" <"$output"
        report 'macOS, compiled only' 0 1 0
        ;;
    esac
}

# Measures how much of the library all tests except the long ones run. It is no test itself, so nothing is counted. A
# branch in a header is counted in each place to which a compiler has copied the function.
coverage() { # FOLDER
    local folder=$1 begun=$SECONDS wrap='' seconds
    [ "$stopped" = no ] || return 0
    echo "== coverage ($folder)"
    if ! command -v gcovr >/dev/null; then
        echo '   gcovr is not installed'
        return 0
    fi
    if ! build "$folder" gcc g++ -Ddebug=true -Doptimization=0 -Db_coverage=true \
        -Dc_args=-fprofile-update=atomic; then
        echo '   coverage: the build failed'
        return 0
    fi
    find "$folder" -name '*.gcda' -delete
    if ! meson test -C "$folder" --no-rebuild --quiet --no-suite long --no-suite once \
        >"$output" 2>&1; then
        echo '   coverage: a test failed (see above for the same without coverage)'
    fi
    if [ "$stopped" = no ] && gcovr -r . -f src/ -f include/ --object-directory "$folder" \
        --csv "$folder/coverage.csv" "$folder" >"$output" 2>&1; then
        python3 scripts/print-coverage.py "$folder/coverage.csv"
    else
        cat "$output"
    fi
    processor_seconds
    echo "   coverage: $((SECONDS - begun)) s ($((seconds - used)) s of processor time)"
    used=$seconds
}

optimised='--buildtype=debugoptimized' # -O2 -g
thread='-Db_sanitize=thread'
address='-Db_sanitize=address,undefined'
memory='-Db_sanitize=memory'
origins='-fsanitize-memory-track-origins -Wno-unused-command-line-argument'
lundef='-Db_lundef=false'
lto='-Db_lto=true'

# Halves the compile time and keeps line numbers in sanitizer reports: for configurations that nobody debugs.
lines='-Dc_args=-g1 -Dcpp_args=-g1'
# (at -O1 gcc reports variables as uninitialized that it sees assigned at -O2)
light=(-Ddebug=true -Doptimization=1 '-Dc_args=-g1 -Wno-maybe-uninitialized'
    '-Dcpp_args=-g1 -Wno-maybe-uninitialized')

# The build directory of the first configuration contains those of all others. The first alone runs everything that is
# not long. The others run the tests whose results may differ: ThreadSanitizer sees threads; the others see memory and
# arithmetic, and each body as clang compiles it. These builds are not optimised, so that clang keeps the code that the
# sanitizers check, and compiles in half the time. (In check-long the scenarios are among the long tests. There the
# tests of the first are compiled with -O2, like the library: nearly twice the time of -O1.)
level=-Dtest_level=1
[ $long = no ] || level=-Dtest_level=library
share=1/8 leave_out_long=model configuration 'gcc' build gcc g++ $optimised $level $benchmarks
leave_out='check single standard widths pipeline second' share=1/16 \
    configuration 'gcc TSan' build/gcc-tsan gcc g++ "${light[@]}" $thread
# (lld links sanitized programs in two thirds of the time)
faster=
! command -v ld.lld >/dev/null || faster=lld
CC_LD=$faster CXX_LD=$faster leave_out='check standard steps widths pipeline dump polls second' share=1/16 \
    configuration 'clang ASan+UBSan -O0' build/clang-asan-o0 clang clang++ -Ddebug=true -Doptimization=0 \
    $lines $address $lundef

# Configurations with findings of their own come first, and the long tests last, because a run may have a time limit.
# CONTRIBUTING.md lists what each of them finds. If only the compiler differs, scenarios of the checker and tests
# driven by scripts are left out (the suites check and examples), and random threads as well.
compiler='check examples storm'
if [ $long = yes ]; then
    configuration 'clang' build/clang clang clang++ $optimised $lines $benchmarks
    configuration 'gcc ASan+UBSan' build/gcc-asan gcc g++ "${light[@]}" $address
    cross 'i686' build/i686 i686-linux-gnu /usr/i686-linux-gnu/lib/ld-linux.so.2
    # The parts of other systems: the POSIX table, pipes, and poll() under each loop; of the programs httpd and fetch.
    leave_out_long='check storm standard widths bidec cxx examples top fuzz model' \
        configuration 'gcc, POSIX and poll' build/posix gcc g++ -Ddebug=true -Doptimization=0 $lines \
        -Dplatform=posix -Depoll=false -During=disabled
    again 'gcc, POSIX and poll: httpd, fetch' build/posix '' --no-suite long \
        fetch_epoll httpd_{budgets,files,incidents,tls,failures}_epoll # (epoll stands for poll there)
    # clang 19 checks arguments when they are passed, so arguments from cmocka, which is not instrumented, never count
    # as uninitialised.
    configuration 'clang-19 MSan' build/clang-19-msan clang-19 clang++-19 $optimised $memory \
        $lundef -Dc_args="$origins" -Dcpp_args="$origins"
    leave_out_long=$compiler cross 's390x' build/s390x s390x-linux-gnu qemu-s390x
    tests_on=$one_processor
    leave_out_long=$compiler cross 'aarch64' build/aarch64 aarch64-linux-gnu qemu-aarch64
    tests_on=
    leave_out_long=$compiler configuration 'gcc -O3' build/gcc-o3 gcc g++ -Ddebug=true -Doptimization=3 $lines
    leave_out_long=$compiler configuration 'clang-19' build/clang-19 clang-19 clang++-19 $optimised $lines
    # clang leaves code to the linker that only lld reads.
    CC_LD=lld CXX_LD=lld leave_out_long=$compiler \
        configuration 'clang LTO' build/clang-lto clang clang++ $optimised $lines $lto
    leave_out_long=$compiler configuration 'gcc LTO' build/gcc-lto gcc g++ $optimised $lines $lto
    leave_out_long=$compiler configuration 'gcc -O0' build/gcc-o0 gcc g++ -Ddebug=true -Doptimization=0 $lines
    leave_out_long=$compiler configuration 'clang -O3' build/clang-o3 clang clang++ -Ddebug=true -Doptimization=3 $lines
    # The parts that the other configurations test are absent: the rest builds, and behaves as before.
    leave_out_long='check storm sync queue coroutine schedule inspect bidec cxx model' \
        configuration 'gcc, parts left out' build/without gcc g++ -Ddebug=true -Doptimization=0 $lines \
        -Dhttp=disabled -Dtls=disabled -Dhttp2=disabled -Dzlib=disabled -Dcares=disabled -During=disabled -Dprograms=disabled
    leave_out_long=$compiler cross 'riscv64' build/riscv64 riscv64-linux-gnu qemu-riscv64
    compile_macos
    valgrind_tests 'gcc, Valgrind' build
    configuration 'clang TSan' build/clang-tsan clang clang++ $optimised $lines $thread $lundef
    leave_out_long=check configuration 'clang ASan+UBSan' build/clang-asan clang clang++ $optimised $lines \
        $address $lundef
    coverage build/coverage
    again 'gcc, long tests' build '' --suite long
    again 'gcc TSan, long tests' build/gcc-tsan "$fixed" --suite long --no-suite once \
        --timeout-multiplier 4
fi

cat "$failures"
echo "$passed passed, $failed failed, $skipped skipped"

[ "$stopped" = no ] || exit 143
[ "$failed" -eq 0 ] && [ $((passed + failed)) -gt 0 ]
