(config_file (body (block) @d))
