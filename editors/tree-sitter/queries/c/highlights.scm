; extends
;
; The colours of bide's async and await for tree-sitter's C grammar, beside its own. The grammar does
; not know the words; it takes each for a type or a name, and goes on behind it.

((type_identifier) @keyword.coroutine
  (#any-of? @keyword.coroutine "async" "async_created" "await" "yield" "defer"))

((identifier) @keyword.coroutine
  (#any-of? @keyword.coroutine
    "async" "async_created" "async_sized" "async_generator" "async_for" "await" "yield" "defer"))

; async int f(...): the type stands where the grammar sees nothing
((ERROR . (identifier) @type .)
  (#not-any-of? @type "await" "async" "async_created" "async_for" "yield" "defer"))

; await f(x); and defer f(x); are taken for declarations of f
((declaration
  type: (type_identifier) @keyword.coroutine
  declarator: (function_declarator declarator: (identifier) @function.call))
  (#any-of? @keyword.coroutine "await" "defer"))

((call_expression function: (identifier) @function.builtin)
  (#any-of? @function.builtin "all" "any" "all_ready" "select_any" "spawn" "async_frame"))
