(class_declaration name: (_) @n) @d
(protocol_declaration name: (_) @n) @d
(typealias_declaration name: (_) @n) @d
(function_declaration name: (simple_identifier) @n) @d
(init_declaration "init" @n) @d
(deinit_declaration "deinit" @n) @d
