; inherits: c
(class_interface . "@interface" . (identifier) @n) @d
(class_implementation . "@implementation" . (identifier) @n) @d
(protocol_declaration . "@protocol" . (identifier) @n) @d
(method_definition . (_)* . (identifier) @n) @d
