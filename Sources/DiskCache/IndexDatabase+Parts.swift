/// The columns and triggers for presentations.
///
/// A resource's `part_of` is the row of its presentation's first playlist, the *whole*; a whole is never a part. The
/// whole's row has totals over its parts, so that a listing costs the same however many there are: `parts` (those with
/// a generation), `part_length`, `part_cached` and `part_hits`; its `last_access` is never older than a part's.
/// Triggers update them in the transaction that changes a part, `IndexSaving.Transaction` where it adds a generation.
/// The row stays as long as it has parts.
///
/// A part of a whole that is kept stays that one's part when another whole names it, too: what two recordings have in
/// common is then listed in `further_whole` (`furtherWholesSchema`), and counts in the first one's totals alone.
///
/// A generation's row must be deleted before that of its resource, which the triggers need to find the whole.
extension IndexDatabase {
    static let partsColumns = ["part_of", "parts", "part_length", "part_cached", "part_hits"]

    static let partsSchema = """
        ALTER TABLE resource ADD COLUMN part_of INTEGER;
        ALTER TABLE resource ADD COLUMN parts INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE resource ADD COLUMN part_length INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE resource ADD COLUMN part_cached INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE resource ADD COLUMN part_hits INTEGER NOT NULL DEFAULT 0;
        DROP INDEX resource_hits;
        DROP INDEX resource_cached;
        CREATE INDEX resource_part_of ON resource(part_of) WHERE part_of IS NOT NULL;
        CREATE INDEX resource_parts ON resource(parts) WHERE parts > 0;
        CREATE INDEX whole_key ON resource(key) WHERE part_of IS NULL;
        CREATE INDEX whole_last_access ON resource(last_access) WHERE part_of IS NULL;
        CREATE INDEX whole_hits ON resource(hits + part_hits) WHERE part_of IS NULL;
        CREATE INDEX whole_cached ON resource(cached + part_cached) WHERE part_of IS NULL;
        CREATE TRIGGER part_changed AFTER UPDATE OF cached, hits, last_access ON resource
        WHEN NEW.part_of IS NOT NULL AND NEW.part_of IS OLD.part_of BEGIN
            UPDATE resource SET part_cached = part_cached + NEW.cached - OLD.cached,
                part_hits = part_hits + NEW.hits - OLD.hits, last_access = max(last_access, NEW.last_access)
            WHERE id = NEW.part_of;
        END;
        CREATE TRIGGER part_joined AFTER UPDATE OF part_of ON resource WHEN NEW.part_of IS NOT OLD.part_of BEGIN
            UPDATE resource SET parts = parts - (SELECT count(*) FROM generation WHERE resource = NEW.id),
                part_length = part_length - (SELECT coalesce(max(length), 0) FROM generation WHERE resource = NEW.id),
                part_cached = part_cached - NEW.cached, part_hits = part_hits - NEW.hits
            WHERE id = OLD.part_of;
            UPDATE resource SET parts = parts + (SELECT count(*) FROM generation WHERE resource = NEW.id),
                part_length = part_length + (SELECT coalesce(max(length), 0) FROM generation WHERE resource = NEW.id),
                part_cached = part_cached + NEW.cached, part_hits = part_hits + NEW.hits,
                last_access = max(last_access, NEW.last_access)
            WHERE id = NEW.part_of;
            \(removeEmptyWhole)
        END;
        CREATE TRIGGER part_removed AFTER DELETE ON resource WHEN OLD.part_of IS NOT NULL BEGIN
            UPDATE resource SET part_cached = part_cached - OLD.cached, part_hits = part_hits - OLD.hits
            WHERE id = OLD.part_of;
            \(removeEmptyWhole)
        END;
        CREATE TRIGGER part_generation_added AFTER INSERT ON generation
        WHEN (SELECT part_of FROM resource WHERE id = NEW.resource) IS NOT NULL BEGIN
            UPDATE resource SET parts = parts + 1, part_length = part_length + NEW.length
            WHERE id = (SELECT part_of FROM resource WHERE id = NEW.resource);
        END;
        CREATE TRIGGER part_generation_removed AFTER DELETE ON generation
        WHEN (SELECT part_of FROM resource WHERE id = OLD.resource) IS NOT NULL BEGIN
            UPDATE resource SET parts = parts - 1, part_length = part_length - OLD.length
            WHERE id = (SELECT part_of FROM resource WHERE id = OLD.resource);
        END;
        """

    static let furtherWholesSchema = """
        DROP TRIGGER IF EXISTS part_generation_added;
        CREATE TABLE further_whole (
            part INTEGER NOT NULL REFERENCES resource(id) ON DELETE CASCADE,
            whole INTEGER NOT NULL REFERENCES resource(id) ON DELETE CASCADE, PRIMARY KEY (whole, part)) WITHOUT ROWID;
        CREATE INDEX further_whole_part ON further_whole(part);
        CREATE TRIGGER further_whole_left AFTER DELETE ON further_whole BEGIN
            DELETE FROM resource WHERE id = OLD.whole AND pinned = 0 AND parts = 0
                AND NOT EXISTS (SELECT 1 FROM generation WHERE resource = OLD.whole)
                AND NOT EXISTS (SELECT 1 FROM further_whole WHERE whole = OLD.whole)
                AND NOT EXISTS (SELECT 1 FROM resource p WHERE p.part_of = OLD.whole);
        END;
        CREATE TRIGGER part_moved AFTER UPDATE OF part_of ON resource WHEN OLD.part_of IS NOT NULL BEGIN
            DELETE FROM further_whole WHERE whole = NEW.part_of AND part = NEW.id;
        END;
        """

    /// Deletes a row that existed only for its parts, with the last of them.
    private static let removeEmptyWhole = """
        DELETE FROM resource WHERE id = OLD.part_of AND pinned = 0
            AND NOT EXISTS (SELECT 1 FROM generation WHERE resource = OLD.part_of)
            AND NOT EXISTS (SELECT 1 FROM resource p WHERE p.part_of = OLD.part_of);
        """
}
