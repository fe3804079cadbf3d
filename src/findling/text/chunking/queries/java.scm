(class_declaration name: (_) @n) @d
(interface_declaration name: (_) @n) @d
(enum_declaration name: (_) @n) @d
(record_declaration name: (_) @n) @d
(annotation_type_declaration name: (_) @n) @d
(method_declaration name: (_) @n) @d
(constructor_declaration name: (_) @n) @d
(compact_constructor_declaration name: (_) @n) @d
