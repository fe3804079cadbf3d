(function_definition (signature (call_expression . (_) @n))) @d
(macro_definition (signature (call_expression . (_) @n))) @d
(function_definition (signature (_ (call_expression . (_) @n)))) @d
(struct_definition (type_head . (_ . (identifier) @n))) @d
(abstract_definition (type_head . (_ . (identifier) @n))) @d
(struct_definition (type_head . (identifier) @n)) @d
(abstract_definition (type_head . (identifier) @n)) @d
(module_definition name: (_) @n) @d
(source_file (assignment . (call_expression . (_) @n)) @d)
(module_definition (assignment . (call_expression . (_) @n)) @d)
