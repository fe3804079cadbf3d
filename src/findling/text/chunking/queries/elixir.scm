(call target: (identifier) @k (arguments . [(alias) (identifier)] @n)) @d
(call target: (identifier) @k (arguments . (call target: (_) @n))) @d
(call target: (identifier) @k (arguments . (binary_operator left: (call target: (_) @n)))) @d
(call target: (identifier) @k (arguments . (string) @n) (do_block)) @d
