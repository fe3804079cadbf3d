(function_declaration name: (_) @n) @d
(assignment_statement (variable_list . name: (_) @n) (expression_list . value: (function_definition))) @d
(variable_declaration
  (assignment_statement (variable_list . name: (_) @n) (expression_list . value: (function_definition)))) @d
(field name: (_) @n value: (function_definition)) @d
