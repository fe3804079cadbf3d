-- min_reader: 8
-- Legs lie on each host. The tables of those in the server leave; copies of files come, for hosts that have no legs.

DROP TABLE findling.keyword_legs, findling.keyword_segments, findling.keyword_blocks, findling.vector_tables,
    findling.vector_blocks, findling.leg_states, findling.exact_segments, findling.exact_blocks, findling.graph_parts;

-- One role made it for a workspace with many vectors, perhaps another one than brings this step.
DO $$
BEGIN
    DROP TABLE IF EXISTS findling.vector_rows;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'findling.vector_rows belongs to another role, and is used no more';
END $$;

-- A copy lists its files and their parts in order; `sum` is the SHA-256 of all that the row says. A part never changes.
CREATE TABLE findling.leg_copies (
    ws integer NOT NULL, leg text COLLATE "C" NOT NULL, owner text COLLATE "C" NOT NULL, seq bigint NOT NULL,
    files text COLLATE "C" NOT NULL, parts bytea[] NOT NULL, sum bytea NOT NULL,
    shipped_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (ws, leg, owner));
CREATE TABLE findling.leg_parts (
    ws integer NOT NULL, digest bytea NOT NULL, data bytea NOT NULL, PRIMARY KEY (ws, digest));
ALTER TABLE findling.leg_parts ALTER data SET STORAGE EXTERNAL; -- compressed where that pays

SELECT findling.guard(ARRAY['leg_copies', 'leg_parts']);
