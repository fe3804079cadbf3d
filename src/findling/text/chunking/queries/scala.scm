(class_definition name: (_) @n) @d
(object_definition name: (_) @n) @d
(trait_definition name: (_) @n) @d
(enum_definition name: (_) @n) @d
(function_definition name: (_) @n) @d
(package_object name: (_) @n) @d
(given_definition name: (_) @n) @d
(extension_definition parameters: (_) @n) @d
(compilation_unit (type_definition name: (_) @n) @d)
