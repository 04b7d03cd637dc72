#!/bin/sh
# Which locals are saved at an await, and that text and saves do not grow with a product: liveness_test.sh BIDEC ROOT. The
# value that each local has behind an await is the matter of random_test.py and torture_test.sh.
# shellcheck source=tests/bidec/opening.sh
. "$(dirname "$0")/opening.sh"

# A local whose name begins with `kept` is saved at an await, one whose name begins with `dead` never is.
cat >which.c <<'END'
#include <bide/async.h>
async int g(int a)
{
    return a;
}
int use(int);

async int behind_a_label(int n)
{
    int dead_before = use(n), kept_1 = use(1);
again:
    use(dead_before);
    dead_before = use(2);
    await g(kept_1);
    int dead_after = use(3);
    use(dead_after);
    dead_before = 4;
    if (use(kept_1))
        goto again;
    return 0;
}

/* back over a declaration, which keeps the value: its block does not end */
async int over_a_declaration(int n)
{
    goto first;
again:
    await g(n);
    goto behind;
first:;
    int kept_2 = use(n);
behind:
    if (use(kept_2))
        goto again;
    return 0;
}

async int branches(int n)
{
    int dead_in_then = use(n), dead_in_all = use(1);
    if (use(dead_in_all)) {
        await g(n);
        return 1;
    }
    return use(dead_in_then);
}

async int written_again(int n)
{
    int dead_value = use(n), kept_3 = use(2), kept_4 = 0;
    use(dead_value);
    dead_value = await g(n);
    kept_3 += await g(dead_value); /* read before the await, or behind it */
    for (int kept_i = 0; kept_i < n; kept_i++) {
        int dead_inside = use(kept_i);
        kept_4 += use(dead_inside);
        await g(1);
        dead_inside = use(n);
        use(dead_inside);
    }
    do {
        int dead_again = use(n);
        if (use(dead_again))
            continue;
        await g(2);
    } while (use(n));
    return kept_3 + kept_4;
}

async int cases(int n)
{
    int kept_5 = use(n), dead_case = use(3);
    switch (n) {
        int dead_entered;
    case 1:
        dead_entered = use(4);
        await g(dead_entered);
        use(kept_5);
        break;
    case 2:
        use(dead_case);
        await g(2);
        break;
    default:
        return await g(dead_case);
    }
    return kept_5;
}

async_generator(int) int several(int n)
{
    int kept_6 = use(n), dead_yielded = use(n);
    yield use(dead_yielded);
    yield use(kept_6);
}

async int each(int n)
{
    int kept_7 = use(n), dead_sum = use(n);
    use(dead_sum);
    async_for (int dead_value_of, several(3)) {
        dead_sum = use(dead_value_of);
        use(dead_sum + kept_7);
    }
    return 0;
}

/* The jump is hidden from the translator: all locals in sight are saved. */
async int hidden_jump(int n)
{
    int kept_8 = use(n);
    while (use(1)) {
        await g(n);
        _Generic(n, int: ({ if (use(2)) break; 0; }), default: 0);
    }
    return kept_8;
}
END
# (with memory that is not zero, as it may be)
gcc -E -D__BIDEC__=1 -I"$root/include" which.c | MALLOC_PERTURB_=85 "$bidec" >which.out || failed=1
grep -o 'bide_self->[a-z0-9_]* = [a-z0-9_]*;' which.out |
    sed -n 's/^bide_self->\([a-z0-9_]*\) = \1;$/\1/p' | sort -u >saved
if grep dead saved; then
    echo "these are saved, though no path leads to a use"
    failed=1
fi
for name in $(grep -o 'kept_[0-9i]*' which.c | sort -u); do
    grep -qx "$name" saved || { echo "$name is not saved"; failed=1; }
done

# KIND COUNT: a function of that many parts
write() {
    echo '#include <bide/async.h>'
    echo 'async int g(int a) { return a; } int use(int);'
    echo 'async int f(int c) {'
    case $1 in
    locals) # all are live at each await
        seq "$2" | sed 's/.*/int v& = use(&);/'
        seq "$2" | sed 's/.*/use(await g(&));/'
        seq "$2" | sed 's/.*/use(v&);/' ;;
    chain) echo 'int v0 = 1;'; seq "$2" | awk '{ print "int v" $1 " = await g(v" $1 - 1 ");" }' ;;
    labels) echo 'int v = c;'; seq "$2" | awk -v n="$2" '{ print "l" $1 ": v = await g(v); if (v) goto l" $1 * 7 % n + 1 ";" }' ;;
    else) seq "$2" | sed 's/.*/if (c == &) use(await g(&)); else/'; echo ';' ;;
    cleanups) seq "$2" | sed 's/.*/{ defer use(&); use(await g(&)); if (c) return 1; }/' ;;
    cases) echo 'switch (c) {'; seq "$2" | sed 's/.*/case &: use(await g(&)); break;/'; echo '}' ;;
    sum) echo 'use('; seq "$2" | sed 's/.*/await g(c + &) +/'; echo 'c);' ;;
    choices) echo 'use('; seq "$2" | sed 's/.*/c == & ? await g(&) :/'; echo 'c);' ;;
    parentheses) seq "$2" | sed 's/.*/(/'; echo 'await g(1)'; seq "$2" | sed 's/.*/)/'; echo ';' ;;
    blocks) seq "$2" | sed 's/.*/{/'; echo 'await g(1);'; seq "$2" | sed 's/.*/}/' ;;
    loops) seq "$2" | sed 's/.*/while (c)/'; echo 'await g(1);' ;;
    esac
    echo 'return c; }'
}

translate() { # KIND COUNT: the output in `out`, and its saves in `saves`
    write "$1" "$2" >many.c
    gcc -E -D__BIDEC__=1 -I"$root/include" many.c >many.i
    "$bidec" <many.i >out 2>said
}

for kind in locals chain labels else cleanups cases sum choices; do
    for count in 500 1000 5000; do
        translate $kind $count || { echo "$kind $count:"; cat said; failed=1; }
        size=$(($(wc -c <out) - $(wc -c <many.i)))
        saves=$(grep -o 'bide_self->\(v[0-9]*\) = \1;' out | wc -l)
        echo "$kind $count: $size bytes, $saves saves"
        [ $count != 500 ] || first=$size
        [ "$saves" -le $((24 * count)) ] || { echo "too many saves"; failed=1; }
        # (numbers get longer)
        [ "$size" -le $((first * count / 500 * 5 / 4)) ] || { echo "the text grows faster than the program"; failed=1; }
    done
done

# deeper than the translator can follow: a sentence
for kind in parentheses blocks loops else; do
    if translate $kind 200000 || ! grep -Eq 'many.c:[0-9]+:[0-9]+: error: this (is nested|has more parts)' said; then
        echo "$kind: should say that it is nested too deeply"
        head -3 said
        failed=1
    fi
done
exit $failed
