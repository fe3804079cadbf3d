; inherits: ecmascript
(field_definition property: (_) @n value: [(arrow_function) (function_expression) (generator_function) (class)]) @d
