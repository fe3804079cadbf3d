(function_definition name: (_) @n) @d
(class_definition name: (_) @n) @d
(decorated_definition definition: (_ name: (_) @n)) @d
(module (if_statement condition: (comparison_operator . (identifier) @k @n)) @d)
