#!/bin/sh
# AddressSanitizer reports a use of a local behind its block in an async function, at its line, and nothing else:
# asan_test.sh BIDEC ROOT LIBRARY. BIDE_COMPILERS names the compilers.
# shellcheck source=tests/bidec/opening.sh
. "$(dirname "$0")/opening.sh"

cat >dead.c <<'END'
#include <bide/async.h>
#include <bide/sleep.h>
#include <bide/sync_wait.h>
#include <stdio.h>
#include <stdlib.h>

static int *kept;
static volatile int sum;

async int later(int n)
{
    await bide_sleep_for(0);
    return n;
}

/* (without braces: what is written behind the return is no part of the if) */
async void leaves(int n)
{
    if (n > 100)
        return;
    await later(n);
    sum += n;
}

/* all uses are right: of blocks that are entered again, by a goto, by a case, and that overlap others */
async int right(int n)
{
    for (int i = 0; i < 2; i++) {
        int a[20] = {i};
        kept = a;
        sum += await later(kept[0]);
        if (i == 0)
            continue;
        { int b[3] = {1, 2, 3}; kept = b; await later(1); sum += kept[2]; }
        { char c[70]; kept = (int *)(void *)c; c[69] = 1; await later(2); sum += c[69]; }
        sum += ({ int d[2] = {4, 5}; kept = d; await later(3); kept[1]; }) + await later(a[0]);
    }
    for (int i = 0; i < 3; i++) {
        switch (i) {
            int e[4];
        case 0:
            e[0] = 1;
            break;
        case 1: {
            int f[9] = {6};
            kept = f;
            await later(4);
            sum += f[0];
        }
        /* fallthrough */
        default:
            e[3] = 2;
            kept = e;
            await later(5);
            sum += kept[3];
        }
    }
    int times = 0;
again: {
    int g[8] = {7};
    kept = g;
    await later(6);
inside:
    kept = g;
    kept[7] = times;
    sum += kept[7];
    await later(7);
    sum += kept[7];
}
    if (times++ < 1)
        goto again;
    if (times++ < 4)
        goto inside;
    for (int i = 0; i < 4; i++) {
        int h[6] = {i};
        kept = h;
        defer sum += h[0];
        await later(8);
        if (i == 1) {
            int copied = h[0];
            if (copied != 0)
                continue;
        }
        {
            int j[12] = {i};
            kept = j;
            defer { for (int k = 0; k < 2; k++) { if (k == 1) break; sum += j[0]; } }
            sum += await later(9) + ({ int m[3] = {1}; kept = m; await later(10); if (i == 2) goto over; *kept; });
            if (i == 3)
                break;
        }
        sum += h[0];
    over:
        sum += h[5];
        kept = h;
        sum += await later(kept[0]);
    }
    while (n > 0) {
        int o[4] = {n--};
        kept = o;
        await later(11);
        switch (kept[0]) {
        case 1: { int p[7] = {1}; kept = p; await later(12); if (p[0] == 1) continue; break; }
        case 2: { char q[90]; kept = (int *)(void *)q; q[89] = 3; await later(13); sum += q[89]; break; }
        }
        sum += o[0];
    }
    return n;
}

#ifdef FAULT
async int wrong(int n)
{
    int behind = 0;
#if FAULT == 1
    {
        int a[4] = {n};
        kept = a;
        await later(1);
    }
    behind += *kept; /* HERE1 */
#elif FAULT == 2
    for (int i = 0, *p = &i; i < 2; i++) {
        kept = p;
        await later(2);
    }
    *kept = 5; /* HERE2 */
#elif FAULT == 3
    while (n-- > 0) {
        int large[64] = {n};
        if (behind != 0)
            sum += *kept;
        kept = large + 32;
        await later(3);
    }
    await later(4);
    behind += *kept; /* HERE3 */
#elif FAULT == 4
    switch (n) {
    default: {
        int a[4] = {n};
        kept = &a[3];
        await later(1);
    }
    }
    free(malloc(1));
    behind += *kept; /* HERE4 */
#elif FAULT == 5
    for (;;) {
        int a[4] = {n};
        kept = a;
        await later(1);
        if (n != 0)
            break;
    }
    behind += *kept; /* HERE5 */
#elif FAULT == 6
    for (int i = 0; i < 2; i++, behind += *kept) { /* HERE6 */
        int a[4] = {n};
        {
            int b[40] = {n};
            kept = b + 30;
            await later(1);
            if (n != 0) {
                behind++;
                continue;
            }
        }
        await later(a[0]);
    }
#elif FAULT == 7
    {
        int a[4] = {n};
        kept = a;
        await later(1);
        goto out;
    }
out:
    behind += *kept; /* HERE7 */
#elif FAULT == 8
    while (n > 0) {
        switch (await later(n)) {
            int a[4];
        default:
            a[1] = n;
            kept = a + 1;
            await later(1);
            break;
        }
        behind += *kept; /* HERE8 */
        n = 0;
    }
#elif FAULT == 9
    do {
        behind += ({ int a[4] = {n}; kept = a; await later(1); if (n != 0) break; a[0]; });
    } while (n != 0);
    behind += *kept; /* HERE9 */
#endif
    return behind;
}
#endif

async int both(int n)
{
    for (int i = 0; i < 3; i++)
        sum += await right(n);
#ifdef FAULT
    sum += await wrong(n);
#endif
    return sum;
}

int main(void)
{
    struct async_both *frame = malloc(sizeof *frame);
    bide_sync_wait(async_both(frame, 2));
    printf("%d\n", (int)sum);
    free(frame);
    return 0;
}
END
cat >tiny.c <<'END'
#include <stdlib.h>
int main(int n, char **v)
{
    char *p = malloc(1);
    (void)v;
    return n > 1 ? p[1] : (free(p), 0);
}
END
# (the leaks are another matter: LeakSanitizer does not run under a debugger)
export ASAN_OPTIONS=detect_leaks=0:allow_user_poisoning=1

# Reports have lines if the runtime library finds a program that reads debug information. It may look for one of its own
# version alone, which is another package. Without any, only the reports are checked, and not their lines.
given=${ASAN_SYMBOLIZER_PATH-}
has_lines() { ./tiny fault 2>&1 | grep -q 'tiny.c:6'; }
find_symbolizer() {
    lines=yes
    unset ASAN_SYMBOLIZER_PATH
    [ -z "$given" ] || export ASAN_SYMBOLIZER_PATH="$given"
    has_lines && return
    for symbolizer in "llvm-symbolizer-${cc##*-}" llvm-symbolizer addr2line; do
        path=$(command -v "$symbolizer") || continue
        export ASAN_SYMBOLIZER_PATH="$path"
        has_lines && return
    done
    unset ASAN_SYMBOLIZER_PATH
    lines=no
    echo "$cc: there is no symbolizer: lines of reports are not checked"
}
is_in_line() { [ $lines = no ] || grep -q "dead.c:$1" said; }

ran=0
for cc in ${BIDE_COMPILERS:-gcc clang-14 clang-19}; do
    command -v "$cc" >/dev/null && "$cc" -g -fsanitize=address tiny.c -o tiny 2>/dev/null && ./tiny || continue
    ran=$((ran + 1))
    find_symbolizer
    # shellcheck disable=SC2086 # words
    build() { "$bidec" "$cc" -std=gnu11 -g "$@" "-I$root/include" dead.c "$library" $BIDE_LIBS -o dead 2>said; }
    # the translated text has no warnings of its own
    "$cc" -std=gnu11 -fsanitize=address "-I$root/include" -D__BIDEC__=1 -E dead.c >dead.i && "$bidec" <dead.i >text.i &&
        "$cc" -std=gnu11 -fsanitize=address -Wall -Wextra -Werror -c text.i -o text.o 2>said ||
        { echo "$cc: the translated text is warned about:"; head -20 said; failed=1; }
    build -O1 && ./dead >expected 2>said || { echo "$cc: the program itself:"; cat said; failed=1; }
    for level in -O0 -O1; do
        if ! build $level -fsanitize=address || ! ./dead >seen 2>said || ! cmp -s expected seen; then
            echo "$cc $level: what is right is reported, or behaves otherwise:"
            head -20 said
            failed=1
        fi
        for fault in 1 2 3 4 5 6 7 8 9; do
            line=$(grep -n "HERE$fault" dead.c | cut -d: -f1)
            if ! build $level -fsanitize=address -DFAULT=$fault; then
                echo "$cc $level $fault: does not compile"
                head -5 said
                failed=1
            elif ./dead >/dev/null 2>said || ! grep -q 'use-after-poison' said || ! is_in_line "$line"; then
                echo "$cc $level $fault: should report a use in line $line"
                head -20 said
                failed=1
            fi
        done
    done
done
[ $ran != 0 ] || { echo "skipped: there is no AddressSanitizer"; exit 77; }
exit $failed
