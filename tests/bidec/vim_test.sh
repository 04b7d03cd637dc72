#!/bin/sh
# Vim highlights the keywords of async functions in files that include the header: vim_test.sh ROOT
set -eu
root=$1
command -v vim >/dev/null && vim --version | grep -q +syntax || {
    echo "skipped: vim with syntax is not installed"
    exit 77
}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cat >"$directory/words.c" <<'END'
#include <bide/async.h>
async int f(void);
async_generator(long) int g(int all)
{
    defer f();
    yield try await all(f(), f());
    async_for (long x, g(1)) spawn(&s, f());
    return all + try;
}
recursive_generator(int) void h(int generator) { yield_from h(generator); }
async void i(int when) { try async_select () {
    when (f()) { g(when); } }
    await async_block({ async_capture int n = when; f(); });
    int async_block = async_capture;
}
async_kind(k) int j(async_pointer(int) p) { return await async_call(p) + 1; }
END
sed 1d "$directory/words.c" >"$directory/plain.c"
cat >"$directory/look.vim" <<'END'
function Group(line, word)
  call cursor(a:line, 1)
  let column = matchstrpos(getline(a:line), '\<' . a:word . '\>')[1] + 1
  return synIDattr(synID(a:line, column, 1), 'name')
endfunction
let first = expand('%:t') == 'words.c' ? 0 : -1
let seen = []
for [line, word] in [[2, 'async'], [3, 'async_generator'], [3, 'all'], [5, 'defer'], [6, 'yield'], [6, 'try'], [6, 'await'], [6, 'all'], [7, 'async_for'], [7, 'spawn'], [8, 'all'], [8, 'try'], [10, 'recursive_generator'], [10, 'generator'], [10, 'yield_from'], [11, 'when'], [11, 'async_select'], [12, 'when'], [13, 'async_block'], [13, 'async_capture'], [14, 'async_block'], [14, 'async_capture'], [16, 'async_kind'], [16, 'async_pointer'], [16, 'async_call']]
  call add(seen, word . ' ' . Group(line + first, word))
endfor
call writefile(seen, expand('%') . '.seen')
quit
END
for name in words plain; do
    timeout 60 vim -es -u NONE --cmd 'set nocompatible' --cmd "set runtimepath^=$root/editors/vim runtimepath+=$root/editors/vim/after" \
        -c 'filetype on' -c 'syntax on' -c 'set filetype=c' -c "source $directory/look.vim" "$directory/$name.c" </dev/null || true
done
cat >"$directory/wanted" <<'END'
async bideAsync
async_generator bideAsync
all 
defer bideStatement
yield bideStatement
try bideStatement
await bideStatement
all bideStatement
async_for bideRepeat
spawn bideStatement
all 
try 
recursive_generator bideAsync
generator 
yield_from bideStatement
when 
async_select bideConditional
when bideConditional
async_block bideAsync
async_capture bideAsync
async_block 
async_capture 
async_kind bideAsync
async_pointer bideAsync
async_call bideStatement
END
sed 's/ *$//' "$directory/wanted" >"$directory/words.wanted"
sed 's/ .*//' "$directory/wanted" >"$directory/plain.wanted"
for name in words plain; do
    sed 's/ *$//; s/ c[A-Z][A-Za-z]*$//' "$directory/$name.c.seen" | diff "$directory/$name.wanted" - || exit 1
done
