#!/bin/sh
# Locals that are used across an await are found with the options that bide_begin's documentation names, and no others
# are reported: lost_locals_test.sh INCLUDE-DIRECTORY. The examples lose none.
set -u
include=$1
root=${include%/include}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export LC_ALL=C
failed=0
ran=0

# Each sample is a body on one line, which the compiler's message names.
prelude='#include "bide/task.h"
struct pair { int a, b; };
struct x { bide_task task; bide_awaiter *awaiter; int i; int n; char text[16]; };
int get(void); void use(int); void fill(int *); void fill_text(char *); void use_text(const char *); struct pair make(void);'
samples='lost constant: int n = 5; AWAIT; use(n);
lost computed: int n = self->n; AWAIT; use(n);
lost called: int n = get(); AWAIT; use(n);
lost assigned: int n; n = get(); AWAIT; use(n);
lost counter: for (int i = 0; i < 10; i++) { AWAIT; }
lost counter_used: for (int i = 0; i < self->n; i++) { use(i); AWAIT; }
lost sum: int sum = 0; for (self->i = 0; self->i < 10; self->i++) { AWAIT; sum += self->i; } use(sum);
lost pointer: const char *p = self->text; AWAIT; use(*p);
lost pointer_passed: const char *p = self->text; AWAIT; use_text(p);
lost status: int status; bide_await_status(status, self->awaiter); AWAIT; use(status);
lost address: int n = 0; fill(&n); AWAIT; use(n);
lost address_only: int n; fill(&n); AWAIT; use(n);
lost struct: struct pair p = make(); AWAIT; use(p.a);
lost struct_constant: struct pair p = {1, 2}; AWAIT; use(p.b);
lost array: char text[16] = "x"; AWAIT; use_text(text);
lost array_filled: char text[16]; fill_text(text); AWAIT; use_text(text);
lost flag: bool found = false; for (self->i = 0; self->i < 3; self->i++) { if (self->i == self->n) found = true; AWAIT; } if (found) use(1);
lost on_one_path: int n = get(); if (self->i) AWAIT; use(n);
lost tried: int n = get(); bide_try(self->awaiter); use(n);
kept in_a_block: { int n = get(); use(n); } AWAIT; { int n = get(); use(n); }
kept set_again: int n; n = get(); use(n); AWAIT; n = get(); use(n);
kept not_used_again: { int n = get(); use(n); } AWAIT; use(1);
kept status_used_at_once: int status; bide_await_status(status, self->awaiter); if (status < 0) bide_return(status); AWAIT;
kept constant_of_the_program: static const int n = 5; AWAIT; use(n);
kept flag_set_after: bool found; found = false; while (!found) { AWAIT; found = self->n == 3; }
kept member: self->i = get(); AWAIT; use(self->i);'

# (in standard C one await to a line: there a sample is a line in the message, and several in the file)
program() { # VARIANT
    echo "$prelude"
    number=0
    echo "$samples" | while read -r kind name text; do
        number=$((number + 1))
        name=${name%:}
        printf 'extern const bide_point *%s_%s_of;\n' "$kind" "$name"
        printf '#line %d "sample"\n' "$number"
        printf 'bide_coroutine(%s_%s) { bide_begin(%s_%s, struct x *self); %s bide_end(); }\n' "$kind" "$name" "$kind" \
            "$name" "$text" | sed 's/AWAIT/bide_await(self->awaiter)/g'
        printf 'const bide_point *%s_%s_of = &%s_%s;\n' "$kind" "$name" "$kind" "$name"
    done
}
program >"$folder/samples.c"

# The samples that the compiler warns of.
told() { # COMPILER OPTION...
    "$@" -std=c11 -I"$include" -c "$folder/samples.c" -o "$folder/x.o" >"$folder/messages" 2>&1
    grep -o '^sample:[0-9]*:[0-9]*: warning' "$folder/messages" | cut -d : -f 2
    # (gcc names the macro's own line in the header, and the sample below it)
    grep -o '^sample:[0-9]*:[0-9]*: note: in expansion' "$folder/messages" | cut -d : -f 2
}

# At least these of the lost, and none of the kept.
expect() { # WHAT FOUND MISSED...
    what=$1 found=$2
    shift 2
    number=0
    echo "$samples" | while read -r kind name text; do
        number=$((number + 1))
        name=${name%:}
        case " $* " in *" $name "*) continue ;; esac
        if echo "$found" | grep -qx "$number"; then
            [ "$kind" = lost ] || echo "# FAILED: $what: $name is kept, and told of"
        else
            [ "$kind" = kept ] || echo "# FAILED: $what: $name is lost, and not told of"
        fi
    done >"$folder/failures"
    cat "$folder/failures"
    [ ! -s "$folder/failures" ] || failed=1
    echo "# $what: $(echo "$found" | sort -u | grep -c .) found"
}

argument='core.CallAndMessage:ArgPointeeInitializedness=true'
for cc in clang-14 clang-19; do
    [ -z "${BIDE_COMPILERS-}" ] || continue
    command -v "$cc" >/dev/null || continue
    ran=$((ran + 2))
    found=$(told "$cc" --analyze -Xclang -analyzer-config -Xclang "$argument")
    expect "$cc --analyze" "$found"
    found=$(told "$cc" -Wall -Wconditional-uninitialized)
    expect "$cc -Wconditional-uninitialized" "$found" pointer_passed struct struct_constant array array_filled
done
if command -v gcc >/dev/null; then
    ran=$((ran + 2))
    found=$(told gcc -O2 -Wall)$(echo; told gcc -O1 -Wall -fno-tree-ccp -fno-tree-fre -fno-tree-dominator-opts)
    expect "gcc, both ways" "$found"
fi
if [ "$ran" -eq 0 ]; then
    echo "neither gcc nor clang is there"
    exit 77
fi

for file in $(grep -rl 'bide_begin(' "$root/examples" --include=*.c); do
    # (programs in async C are the translator's)
    ! grep -qE '(^|[^a-z_])await ' "$(dirname "$file")"/*.c || continue
    for way in 'gcc -O2 -Wall' 'gcc -O1 -Wall -fno-tree-ccp -fno-tree-fre -fno-tree-dominator-opts' \
        'clang-19 -Wall -Wconditional-uninitialized'; do
        case " ${BIDE_COMPILERS-${way%% *}} " in *" ${way%% *} "*) ;; *) continue ;; esac
        # (the examples are built so in any case)
        [ -z "${BIDE_COMPILERS-}" ] || [ "$way" != 'gcc -O2 -Wall' ] || continue
        command -v "${way%% *}" >/dev/null || continue
        ran=$((ran + 1))
        # shellcheck disable=SC2086 # a command and its options
        if ! $way -std=c11 -D_GNU_SOURCE -I"$include" -I"$(dirname "$file")" -c "$file" -o "$folder/x.o" \
            >"$folder/messages" 2>&1 || grep -q 'uninitialized' "$folder/messages"; then
            echo "# FAILED: $file, $way"
            head -n 12 "$folder/messages"
            failed=1
        fi
    done
done
echo "# $ran compilations"
exit $failed
