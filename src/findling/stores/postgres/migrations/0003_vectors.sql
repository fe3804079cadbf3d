-- min_reader: 3
-- Vectors of the legs in the server. A block holds up to 4,096 rows, column by column, as a vector file does. To fetch
-- 50,000 rows that way takes a quarter of the time of as many rows of a table. Blocks never change but for dead rows.

CREATE TABLE findling.vector_tables (
    ws integer NOT NULL, model text COLLATE "C" NOT NULL, id integer NOT NULL, made_for text COLLATE "C" NOT NULL,
    dimensions integer NOT NULL, generation bigint NOT NULL, next_block bigint NOT NULL, rows bigint NOT NULL,
    has_neighbours boolean NOT NULL, state jsonb NOT NULL, PRIMARY KEY (ws, model));

-- `sum` is the checksum of all columns but `dead`, which lists places of rows.
CREATE TABLE findling.vector_blocks (
    ws integer NOT NULL, id integer NOT NULL, block bigint NOT NULL, sum bigint NOT NULL, dead bytea NOT NULL,
    cids bytea NOT NULL, numbers bytea NOT NULL, scales bytea NOT NULL, codes bytea NOT NULL, rest bytea NOT NULL,
    PRIMARY KEY (ws, id, block));
ALTER TABLE findling.vector_blocks ALTER cids SET STORAGE EXTERNAL, ALTER numbers SET STORAGE EXTERNAL,
    ALTER scales SET STORAGE EXTERNAL, ALTER codes SET STORAGE EXTERNAL, ALTER rest SET STORAGE EXTERNAL;

SELECT findling.guard(ARRAY['vector_tables', 'vector_blocks']);

-- pgvector finds the nearest of many vectors, where the database has it and this role may add it. Others do without. So
-- does a database without a schema public, and a program that adds it at the same moment.
DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS vector SCHEMA public;
EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_file OR invalid_schema_name
    OR duplicate_object OR unique_violation THEN NULL;
END $$;
