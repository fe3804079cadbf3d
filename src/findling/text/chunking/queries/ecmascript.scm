(function_declaration name: (_) @n) @d
(generator_function_declaration name: (_) @n) @d
(class_declaration name: (_) @n) @d
(method_definition name: (_) @n) @d
[(lexical_declaration (variable_declarator name: (_) @n value: [(arrow_function) (function_expression) (generator_function) (class)])) (variable_declaration (variable_declarator name: (_) @n value: [(arrow_function) (function_expression) (generator_function) (class)]))] @d
(export_statement declaration: (_ name: (_) @n)) @d
(export_statement declaration: (_ (variable_declarator name: (_) @n))) @d
(export_statement "default" @n) @d
(program (expression_statement (assignment_expression left: (member_expression) @n)) @d)
(expression_statement (assignment_expression left: (_) @n right: [(arrow_function) (function_expression) (generator_function) (class)])) @d
(expression_statement (call_expression arguments: (arguments . [(string) (template_string)] @n . [(arrow_function) (function_expression) (generator_function) (class)]))) @d
(pair key: (_) @n value: [(arrow_function) (function_expression) (generator_function) (class)]) @d
