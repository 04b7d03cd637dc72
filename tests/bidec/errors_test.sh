#!/bin/sh
# Several errors in one run, each with its file, line and column, its line and a caret: errors_test.sh BIDEC ROOT
# shellcheck source=tests/bidec/opening.sh
. "$(dirname "$0")/opening.sh"

# NAME FILE...: the sources are rejected with the text in NAME.expected
expect() {
    name=$1
    shift
    if "$bidec" gcc -std=gnu11 -I"$root/include" -c "$@" 2>said; then
        echo "$name: was not rejected"
        failed=1
    elif ! diff "$name.expected" said; then
        echo "$name: says something else"
        failed=1
    fi
}

# In one function, in others, in a function that is not async; with tabs and spaces, which the preprocessor changes, and in
# the text of a macro. What is right beside an error is read, and gives no error.
cat >first.c <<'END'
#include <bide/async.h>
#include <bide/bide.h>
#define TEN 10 +

async int g(int a)
{
    return a;
}

async int several(int n)
{
	int   x   =   await g(1   2);
    if (n) {
        y(;
        x = await g(x);
    } else {
        x = 1 +;
    }
    for (;;) { x = await g(TEN); break }
    switch (x) { case await g(1): break; }
    do x++; while (x < 3;
    struct { int a b; } s = {{1}, 2};
    return await g(x), 1 +;
}

async int parameters(int a, what b)
{
    return await g(a);
}

async int calls(int n)
{
    n = await several(1) + await parameters(1, 2);
    n = g(7) + g(8);
    goto nowhere;
    return n;
}

async int awaits(int n)
{
    int a[n];
    await g();
    if (n) {
        await all();
        await g(1);
    }
    await awaits(2);
    return await g(1, 2);
}

void plain(void)
{
    await g(3);
}

async int last(void)
{
    return await g(1);
}
END
cat >first.expected <<'END'
first.c:12:28: error: expected ')', not '2'
   12 | 	int   x   =   await g(1   2);
      | 	                          ^
first.c:14:11: error: expected an expression, not ';'
   14 |         y(;
      |           ^
first.c:17:16: error: expected an expression, not ';'
   17 |         x = 1 +;
      |                ^
first.c:19:31: error: expected an expression, not ')'
   19 |     for (;;) { x = await g(TEN); break }
      |                               ^
first.c:19:40: error: expected ';', not '}'
   19 |     for (;;) { x = await g(TEN); break }
      |                                        ^
first.c:20:23: error: await is not allowed in a case label, which is a constant
   20 |     switch (x) { case await g(1): break; }
      |                       ^~~~~
first.c:21:25: error: expected ')', not ';'
   21 |     do x++; while (x < 3;
      |                         ^
first.c:22:20: error: expected ';', not 'b'
   22 |     struct { int a b; } s = {{1}, 2};
      |                    ^
first.c:23:27: error: expected an expression, not ';'
   23 |     return await g(x), 1 +;
      |                           ^
first.c:26:29: error: unknown type name 'what'
   26 | async int parameters(int a, what b)
      |                             ^~~~
first.c:34:9: error: g is async: await it, or start it with async_g(frame, ...)
   34 |     n = g(7) + g(8);
      |         ^
first.c:34:16: error: g is async: await it, or start it with async_g(frame, ...)
   34 |     n = g(7) + g(8);
      |                ^
first.c:35:10: error: there is no label 'nowhere' in this function
   35 |     goto nowhere;
      |          ^~~~~~~
first.c:41:9: error: the length of 'a' is not constant, so it cannot be kept across an await: give it a constant length, or allocate it
   41 |     int a[n];
      |         ^
first.c:42:11: error: g takes 1 arguments, not 0
   42 |     await g();
      |           ^
first.c:44:15: error: all() needs an operation
   44 |         await all();
      |               ^~~
first.c:47:11: error: awaits awaits itself: its frame would have to contain itself; declare it async_created
   47 |     await awaits(2);
      |           ^~~~~~
first.c:48:18: error: g takes 1 arguments, not 2
   48 |     return await g(1, 2);
      |                  ^
first.c:53:5: error: await is used in plain, which is a plain function: declare that async, or run an async function from here with bide_sync_wait
   53 |     await g(3);
      |     ^~~~~
END
# a file that ends too early, beside one with an error: both are read
cat >third.c <<'END'
#include <bide/async.h>
async int f(int n)
{
    return ;; await ;
}
END
cat >second.c <<'END'
#include <bide/async.h>
async int unclosed(int n)
{
    if (n) {
        await unclosed(n - 1);
    return n;
}
END
cat >both.expected <<'END'
second.c:3:1: error: this block is not closed
    3 | {
      | ^
third.c:4:21: error: expected an expression, not ';'
    4 |     return ;; await ;
      |                     ^
END
expect first first.c
expect both second.c third.c
# Bodies without braces, each with an await: the compiler's error is the only one, and a warning has its
# place.
cat >bodies.c <<'END'
#include <bide/async.h>
async int one(void) { return 1; }
async int bodies(int a)
{
    int s = 0, unused;
    if (a)
        s = await one();
    else
        s = await one();
    if (a) again: s += await one(); else if (s) return await one();
    for (s = await one(); s < 3;)
        s += await one();
    while (s < 5)
        s += await one();
    do
        s += await one();
    while (s < 8);
    switch (a)
    case 3:
        s = await one();
    if (s > 100)
        goto again;
    (void)nothing;
    return s;
}
END
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    "$bidec" $compiler -std=gnu11 -Wall -Wextra -I"$root/include" -c bodies.c 2>said
    [ "$(grep -c 'error:' said)" = 1 ] && grep -q '^bodies.c:23:11: error:.*nothing' said &&
        [ "$(grep 'warning:' said | grep -vc '^bodies.c:5:16: warning: unused variable')" = 0 ] ||
        { echo "bodies: $compiler says something else"; cat said; failed=1; }
    sed '/nothing/d' bodies.c >right.c
    "$bidec" $compiler -std=gnu11 -Wall -Wextra -I"$root/include" -c right.c 2>said || failed=1
    [ "$(grep -cE '(error|warning):' said)" = 1 ] && grep -q '^right.c:5:16: warning: unused variable' said ||
        { echo "right bodies: $compiler says something else"; cat said; failed=1; }
done
# at most twenty
{
    echo '#include <bide/async.h>'
    for n in $(seq 1 30); do
        echo "async int f$n(void) { return await; }"
    done
} >many.c
"$bidec" gcc -std=gnu11 -I"$root/include" -c many.c 2>said
[ "$(grep -c '^many.c:[0-9]*:3[45]: error: ' said)" = 20 ] && [ "$(tail -1 said)" = 'bidec: too many errors' ] ||
    { echo "many: not twenty errors"; cat said; failed=1; }
# in a filter, whose source is not there, the line is the preprocessed one
printf '# 7 "absent.c"\nasync int f(void)\n{\n    return await;\n}\n' | "$bidec" >/dev/null 2>said
printf "absent.c:9:17: error: expected an expression, not ';'\n    9 |     return await;\n      |                 ^\n" >filter.expected
diff filter.expected said || { echo "filter: says something else"; failed=1; }
exit $failed
