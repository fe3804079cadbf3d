-- min_reader: 4
-- The exact leg and the graph leg in the server, and how far each has come.

CREATE TABLE findling.leg_states (
    ws integer NOT NULL, leg text COLLATE "C" NOT NULL, owner text COLLATE "C" NOT NULL, seq bigint NOT NULL,
    generation bigint NOT NULL, next_segment bigint NOT NULL, PRIMARY KEY (ws, leg));

-- A segment lists numbers and hashed ids of its resources; `dead` are places in that list. Nothing else changes.
CREATE TABLE findling.exact_segments (
    ws integer NOT NULL, segment bigint NOT NULL, bits integer NOT NULL, pairs bigint NOT NULL, sum bigint NOT NULL,
    numbers bytea NOT NULL, rids bytea NOT NULL, dead bytea NOT NULL, PRIMARY KEY (ws, segment));
CREATE TABLE findling.exact_blocks (
    ws integer NOT NULL, segment bigint NOT NULL, block integer NOT NULL, data bytea NOT NULL,
    PRIMARY KEY (ws, segment, block));
ALTER TABLE findling.exact_segments ALTER numbers SET STORAGE EXTERNAL, ALTER rids SET STORAGE EXTERNAL;
ALTER TABLE findling.exact_blocks ALTER data SET STORAGE EXTERNAL;

-- The columns of a graph, in parts of 1 MB; a commit replaces those that differ.
CREATE TABLE findling.graph_parts (
    ws integer NOT NULL, name text COLLATE "C" NOT NULL, part integer NOT NULL, code "char" NOT NULL,
    sum bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (ws, name, part));
ALTER TABLE findling.graph_parts ALTER data SET STORAGE EXTERNAL;

SELECT findling.guard(ARRAY['leg_states', 'exact_segments', 'exact_blocks', 'graph_parts']);
