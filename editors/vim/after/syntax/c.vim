" Highlights async and await (bide/async.h) in addition to Vim's own C syntax.
" For files that include the header; for all C files: let g:bide_async = 1.
if get(g:, 'bide_async', 0) || search('\v^\s*#\s*include\s+[<"]bide/async\.h[>"]', 'nw')
  syntax keyword bideAsync async async_created async_frame
  syntax match bideAsync '\v<async_(sized|generator|kind|pointer|pointer_to|create)>\ze\s*\('
  syntax match bideRepeat '\v<async_for>\ze\s*\('
  syntax match bideConditional '\v<async_select>\ze\s*\('
  syntax match bideConditional '\v%(^|\{)\s*\zs<when>\ze\s*\('
  syntax match bideAsync '\v<(recursive_)?generator>\ze\s*\([^()]*\)\s*\h'
  syntax keyword bideStatement await yield yield_from defer
  syntax match bideAsync '\v<async_block>\ze\s*\(\_s*\{'
  syntax match bideAsync '\v<async_capture>\ze\s+\h'
  syntax match bideStatement '\v<try>\ze\_s+<(await|async_for|async_select)>'
  syntax match bideStatement '\v<spawn>\ze\s*\('
  syntax match bideStatement '\v%(<await>\_s*)@<=<(all|any|all_ready|select_any|select_in_order)>\ze\s*\('
  syntax match bideStatement '\v<async_call>\ze\s*\('
  highlight default link bideAsync StorageClass
  highlight default link bideRepeat Repeat
  highlight default link bideConditional Conditional
  highlight default link bideStatement Statement
endif
