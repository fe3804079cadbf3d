(declarations [(signature name: (_) @n) (function name: (_) @n) (bind name: (_) @n)] @d)
(data_type name: (_) @n) @d
(newtype name: (_) @n) @d
(type_synonym name: (_) @n) @d
(class name: (_) @n) @d
(class declarations: (_) @b) @d
(instance patterns: (_) @n) @d
