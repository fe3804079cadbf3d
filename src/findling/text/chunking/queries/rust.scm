(function_item name: (_) @n) @d
(struct_item name: (_) @n) @d
(enum_item name: (_) @n) @d
(trait_item name: (_) @n) @d
(union_item name: (_) @n) @d
(mod_item name: (_) @n) @d
(macro_definition name: (_) @n) @d
(function_signature_item name: (_) @n) @d
(impl_item body: (_) @b) @d
(source_file [(const_item name: (_) @n) (static_item name: (_) @n) (type_item name: (_) @n)] @d)
