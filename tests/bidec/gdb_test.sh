#!/bin/sh
# gdb's commands (scripts/gdb/bide.py) in async functions: a breakpoint on a line, variables by name, and the chain of
# awaits through translated and handwritten coroutines: gdb_test.sh BIDEC ROOT LIBRARY
set -eu
bidec=$(realpath "$1")
root=$(realpath "$2")
library=$(realpath "$3")
if ! command -v gdb >/dev/null || ! gdb -nx -batch -ex 'python print(1)' >/dev/null 2>&1; then
    echo "skipped: gdb is not installed, or has no Python"
    exit 77
fi
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
export LC_ALL=C
failed=0
cat >"$directory/seen.c" <<'END'
#include <bide/async.h>
#include <bide/sync_wait.h>

static volatile long seen;

__attribute__((noinline)) void breakpoint(void)
{
    seen++;
}

async long leaf(const char *text)
{
    long length = 0;
    while (text[length] != 0) {
        length++;
        await bide_sleep_for(1);
    }
    breakpoint(); /* line: leaf */
    return length;
}

struct middle {
    bide_task task;
    async_frame(leaf) leaf;
};

bide_coroutine(middle_body)
{
    bide_begin(middle_body, struct middle * self);
    bide_await(async_leaf(&self->leaf, "three")); /* line: middle */
    bide_end();
}

async int trunk(void)
{
    struct middle middle;
    return await bide_task_init(&middle.task, &middle_body); /* line: trunk */
}

int main(void)
{
    async_frame(trunk) frame;
    return bide_sync_wait(async_trunk(&frame));
}
END
line() { # MARK
    grep -n "/\* line: $1 \*/" "$directory/seen.c" | cut -d: -f1
}

cat >"$directory/expected" <<END
length = 5
text = "three"
  #0 leaf at seen.c:$(line leaf) (running)
  #1 middle_body at seen.c:$(line middle)
  #2 trunk at seen.c:$(line trunk)
END
for cc in gcc clang; do
    command -v $cc >/dev/null || continue
    for optimised in -O0 -O2; do
        # shellcheck disable=SC2086 # a list of words
        (cd "$directory" && "$bidec" $cc -std=gnu11 $optimised -g "-I$root/include" seen.c "$library" $BIDE_LIBS -o seen)
        # The optimiser may move variables and lines.
        stop="break seen.c:$(line leaf)"
        show='printf "length = %ld\ntext = \"%s\"\n", length, bide_self->text'
        [ $optimised = -O0 ] || stop='break breakpoint' show='printf "length = 5\ntext = \"three\"\n"'
        timeout 120 gdb -nx -batch -ex "source $root/scripts/gdb/bide.py" -ex "$stop" -ex run -ex "$show" -ex 'bide bt' \
            "$directory/seen" >"$directory/printed" 2>&1 || true
        # The frame below the trunk is the thread's own root.
        sed -n 's| at [^ ]*/| at |; /^length = /p; /^text = /p; /^  #[0-2] /p' "$directory/printed" >"$directory/shown"
        diff "$directory/expected" "$directory/shown" || {
            echo "$cc $optimised: gdb shows something else"
            cat "$directory/printed"
            failed=1
        }
    done
done
exit $failed
