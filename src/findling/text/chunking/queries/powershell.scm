(function_statement (function_name) @n) @d
(class_statement . (_)? . (simple_name) @n) @d
(enum_statement . (simple_name) @n) @d
(class_method_definition (simple_name) @n) @d
