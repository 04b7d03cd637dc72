#!/bin/sh
# Writes include/bide/detail/editor.h to standard output: editor-header.sh BIDEC [COMPILER]
set -eu
bidec=$1
cc=${2:-gcc}
root=$(cd "$(dirname "$0")/.." && pwd)
cat <<'HEAD'
/*
 * Declarations for editors whose parser is clang (clangd), which read async functions without the
 * translator: each function that makes an awaiter is overloaded with a declaration that has no waiter
 * and returns the value of its await. Made by scripts/editor-header.sh. Floor: tools.
 */
#ifndef BIDE_DETAIL_EDITOR_H
#define BIDE_DETAIL_EDITOR_H

#include "bide/bide.h"
#include "bide/http.h"

/* clang-format off */

/* Passed to operations that are macros, in place of a waiter: async_macros.h. */
struct bide_here_;
extern struct bide_here_ *bide_here_;

/* The value of bide_this_frame(). */
extern bide_frame *bide_frame_;

#define BIDE_EDITOR_ __attribute__((overloadable))
HEAD
printf '#include "bide/bide.h"\n#include "bide/http.h"\n#include "bide/async.h"\n' |
    "$cc" -E -std=gnu11 -D__BIDEC__=1 -I"$root/include" -x c - | "$bidec" --editor
cat <<'TAIL'
#undef BIDE_EDITOR_

/* clang-format on */

#endif
TAIL
