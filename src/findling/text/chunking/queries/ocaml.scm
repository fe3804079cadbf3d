(compilation_unit (value_definition (let_binding pattern: (_) @n)) @d)
(structure (value_definition (let_binding pattern: (_) @n)) @d)
(type_definition (type_binding name: (_) @n)) @d
(module_definition (module_binding (module_name) @n)) @d
(module_type_definition (module_type_name) @n) @d
(class_definition (class_binding (class_name) @n)) @d
(method_definition (method_name) @n) @d
(exception_definition (constructor_declaration (constructor_name) @n)) @d
