-- min_reader: 4
-- The number that the latest holder of the write lock has drawn: a write of an earlier one is refused.

ALTER TABLE findling.workspaces ADD COLUMN holder bigint NOT NULL DEFAULT 0;
