(class_definition name: (_) @n) @d
(enum_declaration name: (_) @n) @d
(extension_declaration name: (_) @n) @d
(mixin_declaration (identifier) @n) @d
((function_signature name: (_) @n) @d . (function_body) @e)
((method_signature (_ name: (_) @n)) @d . (function_body) @e)
