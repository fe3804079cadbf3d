; inherits: c
(function_definition declarator: (_ (function_declarator declarator: (_) @n))) @d
(namespace_definition body: (_) @b) @d
(class_specifier body: (_) @b) @d
(template_declaration (_ body: (_) @b)) @d
(concept_definition name: (_) @n) @d
