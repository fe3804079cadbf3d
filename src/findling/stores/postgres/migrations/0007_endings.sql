-- min_reader: 4
-- The end of a file's name from its first dot on, but never from its first letter, in lower case. `ext:` asks for it.
-- It is null where letters are not ASCII: their lower case is a matter of each client's tables.

ALTER TABLE findling.resources ADD COLUMN ending text COLLATE "C" GENERATED ALWAYS AS (
    CASE WHEN octet_length(path) = char_length(path)
        THEN lower(coalesce(substring(path FROM '(?:^|/)[^/][^/.]*(\.[^/]*)$'), '')) END) STORED;
