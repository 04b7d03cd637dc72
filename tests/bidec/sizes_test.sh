#!/bin/sh
# A local type that is moved in front of the frame is asserted to have the size that it has where it stands: sizes_test.sh
# BIDEC ROOT. The assertions hold, and each fails if the moved type loses what gives it its size.
# shellcheck source=tests/bidec/opening.sh
. "$(dirname "$0")/opening.sh"

cat >moved.c <<'END'
#include <bide/async.h>
#include <bide/sleep.h>
async int f(int n)
{
    struct a { char c; long d; } __attribute__((packed));
    struct __attribute__((packed, aligned(2))) b { char c; struct inner { char x; struct inner *next; } i; long d; } v;
    typedef struct { char c; enum { A = 4, B } e; int bits : 3, : 0, more : 2; char z[sizeof(struct a)]; } t;
#pragma pack(push, 1)
    struct p { char c; int i; } w;
#pragma pack(pop)
    union u { struct a a; struct p q[3]; struct { short m; }; } x = {0};
    await bide_sleep_for(0);
    for (struct { unsigned i, j; } k = {0}; k.i < 2; k.i++)
        await bide_sleep_for(1);
    return (int)(sizeof v + sizeof(t) + sizeof w + sizeof x + B) + n;
}
END
gcc -std=gnu11 -E -D__BIDEC__=1 -I"$root/include" moved.c | "$bidec" >right.i || failed=1
[ "$(grep -c 'bidec: a local type has another size' right.i)" = 6 ] || { echo "there are not six assertions"; failed=1; }
gcc -std=gnu11 -w -c right.i -o /dev/null || { echo "what is right does not compile"; failed=1; }

# CHANGE: a command of sed, for the lines in front of the frame
breaks() {
    sed "1,/^struct async_f {/ { $1; }" right.i >wrong.i
    cmp -s right.i wrong.i && { echo "$1: changes nothing"; failed=1; }
    gcc -std=gnu11 -w -c wrong.i -o /dev/null 2>said && { echo "$1: is not seen"; failed=1; }
    grep -q 'a local type has another size' said || { echo "$1: says something else"; head -3 said; failed=1; }
}
breaks '/^struct .*async_f_a_/ s/packed//'
breaks '/^struct .*async_f_b_/ s/packed//'
breaks "/pragma pack(push, 1)/ d"
exit $failed
