(class_declaration name: (_) @n) @d
(object_declaration name: (_) @n) @d
(function_declaration name: (_) @n) @d
(companion_object "object" @n) @d
(type_alias type: (_) @n) @d
