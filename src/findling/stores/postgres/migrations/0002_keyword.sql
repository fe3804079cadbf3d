-- min_reader: 2
-- The keyword leg in the server: postings in segments of up to 65,536 entries, which never change but for `dead`.
--
-- A block holds neighbouring terms of a field: a row for each term would take three times the text. The directory of a
-- segment has the field and the first term of each block. Numbers are packed in the fewest bytes that hold them.

CREATE TABLE findling.keyword_legs (
    ws integer NOT NULL, unit smallint NOT NULL, owner text COLLATE "C" NOT NULL, seq bigint NOT NULL,
    generation bigint NOT NULL, next_segment integer NOT NULL, PRIMARY KEY (ws, unit));

CREATE TABLE findling.keyword_segments (
    ws integer NOT NULL, unit smallint NOT NULL, segment integer NOT NULL, is_staged boolean NOT NULL,
    entries integer NOT NULL, alive integer NOT NULL, dead bytea NOT NULL, cids bytea NOT NULL, numbers bytea NOT NULL,
    turns bytea NOT NULL, updated bytea NOT NULL, lengths bytea NOT NULL, directory bytea NOT NULL,
    PRIMARY KEY (ws, unit, segment));

CREATE TABLE findling.keyword_blocks (
    ws integer NOT NULL, segment integer NOT NULL, block integer NOT NULL, unit smallint NOT NULL,
    terms bytea NOT NULL, dfs bytea NOT NULL, sizes bytea NOT NULL, docs bytea NOT NULL, tfs bytea NOT NULL,
    positions bytea NOT NULL, PRIMARY KEY (ws, unit, segment, block));

SELECT findling.guard(ARRAY['keyword_legs', 'keyword_segments', 'keyword_blocks']);

-- LZ4 takes a tenth of the time of the older method. Not every server has it.
DO $$
BEGIN
    ALTER TABLE findling.keyword_blocks ALTER terms SET COMPRESSION lz4, ALTER docs SET COMPRESSION lz4,
        ALTER tfs SET COMPRESSION lz4, ALTER positions SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported OR invalid_parameter_value THEN NULL;
END $$;
