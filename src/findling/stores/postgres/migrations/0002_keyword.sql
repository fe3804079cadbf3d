-- min_reader: 2
-- The keyword leg in the server: postings in segments of up to 65,536 entries, which never change but for `dead`.
--
-- A row of postings is one term of a field in a segment. Its key is ordered so that a beginning of words is a range.
-- `whole` is the term where it is too long for a key. Numbers are packed in the fewest bytes that hold them.

CREATE TABLE findling.keyword_legs (
    ws integer NOT NULL, unit smallint NOT NULL, owner text COLLATE "C" NOT NULL, seq bigint NOT NULL,
    generation bigint NOT NULL, next_segment integer NOT NULL, PRIMARY KEY (ws, unit));

CREATE TABLE findling.keyword_segments (
    ws integer NOT NULL, unit smallint NOT NULL, segment integer NOT NULL, is_staged boolean NOT NULL,
    entries integer NOT NULL, alive integer NOT NULL, dead bytea NOT NULL, cids bytea NOT NULL, numbers bytea NOT NULL,
    turns bytea NOT NULL, updated bytea NOT NULL, lengths bytea NOT NULL, PRIMARY KEY (ws, unit, segment));

CREATE TABLE findling.keyword_postings (
    ws integer NOT NULL, segment integer NOT NULL, df integer NOT NULL, unit smallint NOT NULL, field smallint NOT NULL,
    term text COLLATE "C" NOT NULL, whole text COLLATE "C", docs bytea NOT NULL, tfs bytea NOT NULL,
    positions bytea NOT NULL, PRIMARY KEY (ws, unit, field, term, segment) INCLUDE (df));
CREATE INDEX keyword_postings_segment ON findling.keyword_postings (ws, unit, segment);

SELECT findling.guard(ARRAY['keyword_legs', 'keyword_segments', 'keyword_postings']);

-- LZ4 takes a tenth of the time of the older method. Not every server has it.
DO $$
BEGIN
    ALTER TABLE findling.keyword_postings ALTER docs SET COMPRESSION lz4, ALTER tfs SET COMPRESSION lz4,
        ALTER positions SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported OR invalid_parameter_value THEN NULL;
END $$;
