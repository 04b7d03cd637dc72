#!/usr/bin/env bash
# The whole library as one program on a system beside glibc of 64 bits, linked statically: its threads' stacks, a fork, a
# loop; and bide-log is compiled. other_systems_test.sh ROOT musl|i686. In TAP. The core for WebAssembly is compiled only: other_systems_test.sh ROOT wasm.
set -u
root=$1 system=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

skip() {
    echo "1..0 # SKIP $1"
    exit 0
}

failed() { # WHAT; the output is in $scratch/output
    sed 's/^/# /' "$scratch/output" | head -n 30
    echo "not ok 1 - $1"
    echo 1..1
    exit 1
}

case $system in
musl)
    # (musl's own compiler does not look where the kernel's headers are)
    mkdir "$scratch/kernel"
    ln -s /usr/include/linux /usr/include/asm-generic "/usr/include/$(gcc -print-multiarch)/asm" "$scratch/kernel/"
    compiler=(musl-gcc -idirafter "$scratch/kernel")
    ;;
i686)
    # (without optimisation gcc warns of copies of 8 bytes that are never made)
    compiler=(i686-linux-gnu-gcc -Wno-psabi -Wno-stringop-overread -Wno-stringop-overflow -D_FILE_OFFSET_BITS=64)
    ;;
wasm) compiler=(clang --target=wasm32-unknown-unknown -ffreestanding -std=c11 -O1 -Wall -Wextra) ;;
*) skip "there is no test of $system" ;;
esac
command -v "${compiler[0]}" >/dev/null || skip "${compiler[0]} is not installed"
echo 'int main(void) { return 0; }' >"$scratch/empty.c"

if [ "$system" = wasm ]; then
    "${compiler[@]}" -c "$scratch/empty.c" -o "$scratch/empty.o" 2>"$scratch/output" ||
        skip "clang does not compile for WebAssembly"
    sources=0
    for source in "$root"/src/base/*.c "$root"/src/coroutine/*.c "$root"/src/sync/*.c "$root"/src/queue/*.c; do
        "${compiler[@]}" -I"$root/include" -c "$source" -o "$scratch/object" >"$scratch/output" 2>&1 ||
            failed "${source#"$root"/} compiles for WebAssembly"
        sources=$((sources + 1))
    done
    echo "ok 1 - the core compiles for WebAssembly: $sources sources"
    echo 1..1
    exit 0
fi

"${compiler[@]}" -static "$scratch/empty.c" -o "$scratch/empty" 2>"$scratch/output" ||
    skip "${compiler[0]} links no program"
"$scratch/empty" 2>"$scratch/output" || skip "programs for $system do not run here"
{
    "$root/scripts/amalgamate" "$scratch/whole" && cd "$scratch/whole" &&
        "${compiler[@]}" -static -std=gnu11 -O0 -Wall -Wextra -I. \
            "$root/tests/base/other_systems_test.c" bide.c -o program -pthread -lm
} >"$scratch/output" 2>&1 || failed "it compiles for $system"
for source in "$root"/src/log/*.c; do # (with the engines that Linux has)
    "${compiler[@]}" -fsyntax-only -std=gnu11 -Wall -Wextra -Werror -I"$root/include" -DBIDE_LOG_HAS_SHM=1 -DBIDE_LOG_HAS_REDIS=1 "$source" \
        >"$scratch/output" 2>&1 || failed "${source#"$root"/} compiles for $system"
done
timeout 100 ./program
status=$?
[ "$status" -eq 0 ] || echo "Bail out! the program ends with status $status"
exit "$status"
