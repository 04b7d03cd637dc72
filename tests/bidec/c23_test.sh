#!/bin/sh
# The words of C23 in async functions: c23_test.sh BIDEC ROOT LIBRARY. Of the forms below, those that a compiler takes in a
# plain function are put into a program of async functions, whose values must be those of the plain ones. BIDE_COMPILERS
# names the compilers.
# shellcheck source=tests/bidec/opening.sh
. "$(dirname "$0")/opening.sh"

# NAME|of the file|of a function, which returns a number
cat >forms <<'END'
constexpr_bound||constexpr int n = 4; char b[n]; b[3] = 1; later(); return b[3] + (int)sizeof b;
constexpr_more||constexpr int t[] = {1, 2}, k = 3; later(); { constexpr int k = 5; int a[k] = {1}; later(); return a[0] + k + t[1]; }
inferred||auto x = 2.5; auto p = &x; later(); *p += 1; const auto y = 4; later(); return (int)(x * 2) + y;
null||char *p = nullptr; later(); return p == nullptr;
variables||[[maybe_unused]] int x = 1; later(); int y [[maybe_unused]] = 2, z[2] = {3}; later(); return x + y + z[0];
fall||int n = 0; switch (1) { case 1: later(); n++; [[fallthrough]]; default: n++; } return n;
statements||int n = 1; [[maybe_unused]] again: later(); if (n < 3) { n++; goto again; } return n;
aligned||[[gnu::aligned(64)]] char b[64]; later(); b[0] = 1; return (unsigned long)b % 64 == 0;
discard|[[nodiscard]] ASYNC int nd(int v) { later(); return v; }|return AWAIT nd(5);
result|ASYNC int *ri [[gnu::noinline]] (int *v) { later(); return v + 1; }|int v[2] = {1, 2}; return *AWAIT ri(v);
parameters|ASYNC int ap([[maybe_unused]] int v, int w [[maybe_unused]]) { later(); return 3; }|return AWAIT ap(1, 2);
unnamed|ASYNC int up(int, int b, char *) { later(); return b; }|return AWAIT up(1, 2, 0);
deprecated|struct [[deprecated]] old { int x; [[maybe_unused]] int y; }; enum [[maybe_unused]] olds { OLD [[deprecated]] = 4 }; [[deprecated("no")]] int oldf(int);|later(); return 1;
local_struct||struct [[maybe_unused]] s { [[maybe_unused]] int a; int b; } v = {1, 2}; later(); return v.a + v.b;
unqualified||const int c = 3; typeof_unqual(c) d = 4; later(); d++; return c + d;
bits||unsigned _BitInt(12) b = 4095; later(); b++; return (int)b + 7;
per_thread||static thread_local int t = 5; later(); return ++t > 5;
separators||int x = 1'000'000; later(); return x / 1'00 + 0x1'f;
based_enum|enum G : unsigned char { G1 = 200 };|enum F : short { F1 = -3, F2 } f = F1; enum G g = G1; later(); return f + F2 + g + (int)sizeof f;
asserted||static_assert(sizeof(int) == 4); later(); static_assert(true, "yes"); return true;
empty||int a[3] = {}; struct { int x; } s = {}; later(); a[0]++; return a[0] + a[2] + s.x;
optional|#define N(...) (0 __VA_OPT__(+ 1))|int x = N(a) + N(); later(); return x;
binary||int x = 0b101; later(); return x;
labels||int n = 0; later(); { n++; goto end; end: } return n;
END

for cc in ${BIDE_COMPILERS:-gcc clang clang-19}; do
    command -v "$cc" >/dev/null || continue
    for std in gnu23 gnu2x gnu11; do
        echo 'int x;' >plain.c
        "$cc" -std=$std -fsyntax-only plain.c 2>/dev/null && break
    done
    plain='#define ASYNC\n#define AWAIT\n#define later() ((void)0)\n'
    calls=
    taken=0
    printf '#include <bide/async.h>\n#include <bide/sleep.h>\n#include <bide/sync_wait.h>\n#include <stdio.h>\n' >async.c
    printf '#define ASYNC async\n#define AWAIT await\n#define later() await bide_sleep_for(1)\n' >>async.c
    printf '#include <stdio.h>\n%b' "$plain" >plain.c
    while IFS='|' read -r name file body; do
        printf '%b%s\nint f_%s(void) { %s }\n' "$plain" "$file" "$name" "$body" >one.c
        "$cc" -std=$std -w -fsyntax-only one.c 2>/dev/null || continue
        printf '%s\nint f_%s(void) { %s }\n' "$file" "$name" "$body" >>plain.c
        printf '%s\nasync int f_%s(void) { %s }\n' "$file" "$name" "$body" >>async.c
        calls="$calls $name"
        taken=$((taken + 1))
    done <forms
    echo 'int main(void) {' >main.c
    cp main.c async_main.c
    for name in $calls; do
        echo "printf(\"$name %d, \", f_$name());" >>main.c
        echo "{ static struct async_f_$name f; bide_sync_wait(async_f_$name(&f)); printf(\"$name %d, \", f.result); }" >>async_main.c
    done
    cat main.c >>plain.c
    cat async_main.c >>async.c
    echo 'return 0; }' | tee -a async.c >>plain.c
    # shellcheck disable=SC2086
    if ! "$cc" -std=$std -w plain.c -o plain || ! ./plain >expected; then
        echo "$cc: the plain functions"
        failed=1
    elif ! "$bidec" "$cc" -std=$std -w -I"$root/include" async.c -o async "$library" $BIDE_LIBS 2>said; then
        echo "$cc -std=$std: does not compile:"
        head -20 said
        failed=1
    elif ! ./async >seen || ! cmp -s expected seen; then
        echo "$cc -std=$std: other values:"
        diff expected seen
        failed=1
    fi
    echo "$cc -std=$std: $taken forms"
done
exit $failed
