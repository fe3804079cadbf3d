-- min_reader: 4
-- The checksum of a segment of the keyword leg: its columns but `dead`, then its blocks. Only checks look at it.

ALTER TABLE findling.keyword_segments ADD COLUMN sum bigint;
