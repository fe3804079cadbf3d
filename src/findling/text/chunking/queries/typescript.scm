; inherits: ecmascript
(abstract_class_declaration name: (_) @n) @d
(interface_declaration name: (_) @n) @d
(enum_declaration name: (_) @n) @d
(type_alias_declaration name: (_) @n) @d
(module name: (_) @n) @d
(internal_module name: (_) @n) @d
(abstract_method_signature name: (_) @n) @d
(function_signature name: (_) @n) @d
(expression_statement (internal_module name: (_) @n)) @d
(ambient_declaration (_ name: (_) @n)) @d
(public_field_definition name: (_) @n value: [(arrow_function) (function_expression) (generator_function) (class)]) @d
