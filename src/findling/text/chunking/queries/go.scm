(function_declaration name: (_) @n) @d
(method_declaration name: (_) @n) @d
(type_declaration . "type" . (type_spec type: (struct_type . "struct" @n))) @d
(type_declaration . "type" . (type_spec type: (interface_type . "interface" @n))) @d
(type_declaration . "type" . [(type_spec name: (_) @n) (type_alias name: (_) @n)]) @d
(type_spec name: (_) @n) @d
(source_file [(var_declaration . "var" @n) (const_declaration . "const" @n)] @d)
(source_file (var_declaration . "var" . (var_spec . name: (_) @n)) @d)
(source_file (const_declaration . "const" . (const_spec . name: (_) @n)) @d)
