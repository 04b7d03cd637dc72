#!/bin/sh
# Programs whose main is async: they run on a loop, and end with the result of main: main_test.sh BIDEC ROOT LIBRARY
# shellcheck source=tests/bidec/opening.sh
. "$(dirname "$0")/opening.sh"

fail() {
    echo "$1"
    cat said printed
    failed=1
}

# With arguments: awaits on a loop, spawns, defers.
cat >arguments.c <<'END'
#include <bide/async.h>
#include <bide/loop.h>
#include <stdio.h>
#include <stdlib.h>
static async int add(int *sum, int n)
{
    try await bide_sleep_for(1000);
    *sum += n;
    return 0;
}
async int main(int argc, char *argv[])
{
    bide_scope scope;
    int sum = 0;
    bide_scope_init(&scope, bide_this_frame());
    defer bide_scope_destroy(&scope);
    defer puts("deferred");
    for (int i = 1; i < argc; i++) {
        if (spawn(&scope, add(&sum, atoi(argv[i]))) < 0)
            return 99;
    }
    try await bide_scope_join(&scope);
    printf("%d\n", sum);
    return sum;
}
END

# An error that main passes on is reported, and so is one that it returns.
cat >errors.c <<'END'
#include <bide/async.h>
#include <bide/file.h>
#include <bide/loop.h>
#include <stdio.h>
async int main(void)
{
    bide_descriptor file;
    bide_descriptor_init_closed(&file);
    defer puts("deferred");
    try await bide_open(&file, "missing", O_RDONLY, 0);
    return 0;
}
END

# Without awaits.
cat >plain.c <<'END'
#include <bide/async.h>
#include <bide/loop.h>
async int main(void)
{
    return 7;
}
END

expect() { # program, status, output, a line of the errors, arguments ...
    program=$1 status=$2 output=$3 errors=$4
    shift 4
    ./"$program" "$@" >printed 2>said
    ended=$?
    [ $ended -eq "$status" ] || fail "$program $*: ended with $ended, not $status"
    [ "$(tr '\n' ' ' <printed)" = "$output" ] || fail "$program $*: should print: $output"
    [ "$(cat said)" = "$errors" ] || fail "$program $*: should say: $errors"
}

for program in arguments errors plain; do
    # shellcheck disable=SC2086 # lists of words
    "$bidec" ${BIDE_CC:-gcc} -std=gnu11 -O1 -Wall -Wextra -Werror ${BIDE_FLAGS:-} -I"$root/include" $program.c "$library" \
        ${BIDE_LIBS:-} -o $program >printed 2>said || fail "$program: does not compile"
done
expect arguments 6 '6 deferred ' '' 1 2 3
expect arguments 0 '0 deferred ' ''
expect errors 1 'deferred ' './errors: No such file or directory'
expect plain 7 '' ''
exit $failed
