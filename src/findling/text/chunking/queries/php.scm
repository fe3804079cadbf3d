(namespace_definition name: (_) @n) @d
(class_declaration name: (_) @n) @d
(interface_declaration name: (_) @n) @d
(trait_declaration name: (_) @n) @d
(enum_declaration name: (_) @n) @d
(function_definition name: (_) @n) @d
(method_declaration name: (_) @n) @d
