; extends
;
; Highlights bide's async and await in addition to tree-sitter's own queries for C. The grammar does not
; know these words: it parses each as a type or a name.

((type_identifier) @keyword.coroutine
  (#any-of? @keyword.coroutine "async" "async_created" "await" "yield" "defer" "async_capture"))

((identifier) @keyword.coroutine
  (#any-of? @keyword.coroutine
    "async" "async_created" "async_sized" "async_generator" "async_kind" "async_pointer" "async_pointer_to" "async_call" "async_create"
    "async_for" "await" "yield" "yield_from" "defer" "async_capture"))

; async int f(...): the grammar reports the type as an error
((ERROR . (identifier) @type .)
  (#not-any-of? @type "await" "async" "async_created" "async_for" "yield" "defer"))

; await f(x); and defer f(x); are parsed as declarations of f
((declaration
  type: (type_identifier) @keyword.coroutine
  declarator: (function_declarator declarator: (identifier) @function.call))
  (#any-of? @keyword.coroutine "await" "defer"))

((call_expression function: (identifier) @function.builtin)
  (#any-of? @function.builtin "all" "any" "all_ready" "select_any" "select_in_order" "async_select" "when" "spawn" "async_block" "async_frame"))
