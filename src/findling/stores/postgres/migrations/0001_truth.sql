-- min_reader: 1
-- The truth of all workspaces of a database. Every table but two begins with the number of its workspace.
--
-- Texts have the collation "C", whose order is that of Unicode's numbers. Ids and paths have any length, but an entry of
-- a B-tree has 2,700 bytes. So hashes of 16 bytes, which the client makes, find them, or their first 500 letters do.
-- PostgreSQL keeps neither NUL nor half a surrogate pair: U+0010 escapes them.

CREATE TABLE findling.workspaces (
    ws integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    feature integer NOT NULL,
    seq bigint NOT NULL DEFAULT 0,
    log_floor bigint NOT NULL DEFAULT 0,
    -- The latest numbers that were given to resources, vectors, models and wishes. None is used twice.
    number bigint NOT NULL DEFAULT 0,
    mark bigint NOT NULL DEFAULT 0,
    model integer NOT NULL DEFAULT 0,
    turn bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now());

-- A backstop: a statement that forgets its workspace sees nothing of the others.
CREATE FUNCTION findling.guard(tables text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY tables LOOP
        EXECUTE format('ALTER TABLE findling.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE findling.%I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY workspace ON findling.%I'
            ' USING (ws = (SELECT current_setting(''findling.ws'')::integer))', name);
    END LOOP;
END $$;

CREATE TABLE findling.resources (
    ws integer NOT NULL, number bigint NOT NULL, rid_hash bytea NOT NULL, rid text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL, title text COLLATE "C" NOT NULL, path text COLLATE "C" NOT NULL,
    author text COLLATE "C" NOT NULL, lang text COLLATE "C" NOT NULL, tags text COLLATE "C" NOT NULL,
    visibility text COLLATE "C", created_at double precision, updated_at double precision,
    fields text COLLATE "C" NOT NULL, size bigint, mtime_ns bigint, digest bytea, inode bigint,
    supersedes text COLLATE "C", supersedes_hash bytea, characters integer NOT NULL, seq bigint NOT NULL,
    sum bigint NOT NULL, PRIMARY KEY (ws, number));
CREATE UNIQUE INDEX resources_rid ON findling.resources (ws, rid_hash);
CREATE UNIQUE INDEX resources_seq ON findling.resources (ws, seq);
CREATE INDEX resources_path ON findling.resources (ws, "left"(path, 500));
CREATE INDEX resources_supersedes ON findling.resources (ws, supersedes_hash) WHERE supersedes_hash IS NOT NULL;
CREATE INDEX resources_made ON findling.resources (ws, type) WHERE type <> 'file';

-- Apart from resources, so that a scan over metadata never reads text. `digest` is that of the text as it stands here.
CREATE TABLE findling.bodies (
    ws integer NOT NULL, number bigint NOT NULL, digest bytea NOT NULL, is_escaped boolean NOT NULL,
    text text COLLATE "C" NOT NULL, PRIMARY KEY (ws, number));

CREATE TABLE findling.chunks (
    ws integer NOT NULL, cid bigint NOT NULL, resource bigint NOT NULL, digest bytea NOT NULL,
    ordinal integer NOT NULL, start integer NOT NULL, "end" integer NOT NULL,
    line_start integer NOT NULL, line_end integer NOT NULL, heading text COLLATE "C" NOT NULL,
    places text COLLATE "C" NOT NULL, seq bigint NOT NULL, sum bigint NOT NULL, PRIMARY KEY (ws, cid));
CREATE INDEX chunks_resource ON findling.chunks (ws, resource, ordinal);
CREATE INDEX chunks_digest ON findling.chunks (ws, digest);

-- The change log: the latest drop of each chunk and the resources that are gone.
CREATE TABLE findling.dropped (
    ws integer NOT NULL, cid bigint NOT NULL, rid_hash bytea NOT NULL, seq bigint NOT NULL, PRIMARY KEY (ws, cid));
CREATE INDEX dropped_rid ON findling.dropped (ws, rid_hash);
CREATE TABLE findling.deleted (
    ws integer NOT NULL, rid_hash bytea NOT NULL, rid text COLLATE "C" NOT NULL, seq bigint NOT NULL,
    PRIMARY KEY (ws, rid_hash));
CREATE UNIQUE INDEX deleted_seq ON findling.deleted (ws, seq);

CREATE TABLE findling.skipped (
    ws integer NOT NULL, path text COLLATE "C" NOT NULL, reason text COLLATE "C" NOT NULL,
    detail text COLLATE "C" NOT NULL, size bigint NOT NULL, mtime_ns bigint NOT NULL);
CREATE INDEX skipped_ws ON findling.skipped (ws);
CREATE TABLE findling.folders (ws integer NOT NULL, path text COLLATE "C" NOT NULL, mtime_ns bigint NOT NULL);
CREATE INDEX folders_ws ON findling.folders (ws);
CREATE TABLE findling.meta (
    ws integer NOT NULL, key_hash bytea NOT NULL, key text COLLATE "C" NOT NULL, value text COLLATE "C" NOT NULL,
    PRIMARY KEY (ws, key_hash));

-- `covered` is the number of chunks that have a vector: counting takes 25 ms for 50,000 of them.
CREATE TABLE findling.models (
    ws integer NOT NULL, id integer NOT NULL, fingerprint text COLLATE "C" NOT NULL, width integer NOT NULL,
    covered bigint NOT NULL DEFAULT 0, PRIMARY KEY (ws, id));
CREATE UNIQUE INDEX models_fingerprint ON findling.models (ws, fingerprint);
CREATE TABLE findling.vectors (
    ws integer NOT NULL, model integer NOT NULL, mark bigint NOT NULL, digest bytea NOT NULL, vector bytea NOT NULL,
    sum bigint NOT NULL, PRIMARY KEY (ws, model, mark));
CREATE UNIQUE INDEX vectors_digest ON findling.vectors (ws, digest, model);
ALTER TABLE findling.vectors ALTER COLUMN vector SET STORAGE EXTERNAL; -- numbers do not shrink
CREATE TABLE findling.wanted (ws integer NOT NULL, turn bigint NOT NULL, cid bigint NOT NULL, PRIMARY KEY (ws, cid));
CREATE INDEX wanted_turn ON findling.wanted (ws, turn);

CREATE TABLE findling.glossary (
    ws integer NOT NULL, term_hash bytea NOT NULL, "group" text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL,
    surface text COLLATE "C" NOT NULL, status text COLLATE "C" NOT NULL, source text COLLATE "C" NOT NULL,
    snippet text COLLATE "C" NOT NULL, decided_at double precision, sum bigint NOT NULL, PRIMARY KEY (ws, term_hash));
CREATE TABLE findling.relations (
    ws integer NOT NULL, relation_hash bytea NOT NULL, subject text COLLATE "C" NOT NULL,
    relation text COLLATE "C" NOT NULL, object text COLLATE "C" NOT NULL, sum bigint NOT NULL,
    PRIMARY KEY (ws, relation_hash));
CREATE TABLE findling.accesses (
    ws integer NOT NULL, rid_hash bytea NOT NULL, rid text COLLATE "C" NOT NULL, count bigint NOT NULL,
    last_at double precision NOT NULL, PRIMARY KEY (ws, rid_hash));

SELECT findling.guard(ARRAY['resources', 'bodies', 'chunks', 'dropped', 'deleted', 'skipped', 'folders', 'meta',
    'models', 'vectors', 'wanted', 'glossary', 'relations', 'accesses']);

-- LZ4 takes a tenth of the time of the older method. Not every server has it.
DO $$
BEGIN
    ALTER TABLE findling.bodies ALTER COLUMN text SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported OR invalid_parameter_value THEN NULL;
END $$;
