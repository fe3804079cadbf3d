(function_definition declarator: (function_declarator declarator: (_) @n)) @d
(function_definition declarator: (_ declarator: (function_declarator declarator: (_) @n))) @d
(function_definition declarator: (_ declarator: (_ declarator: (function_declarator declarator: (_) @n)))) @d
(struct_specifier name: (_) @n body: (_)) @d
(union_specifier name: (_) @n body: (_)) @d
(enum_specifier name: (_) @n body: (_)) @d
(type_definition type: (_ body: (_) @b)) @d
