(function_declaration name: (_) @n) @d
(variable_declaration (identifier) @n
  [(struct_declaration) (enum_declaration) (union_declaration) (opaque_declaration)]) @d
(test_declaration (string) @n) @d
