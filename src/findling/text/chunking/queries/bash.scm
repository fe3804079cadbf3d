(function_definition name: (_) @n) @d
