package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// applicationID marks our databases: "eigh" in ASCII.
const applicationID = 0x65696768

// migrations lead from schema n to n+1, in order; PRAGMA user_version says how
// many have run. One that has been released is never edited.
var migrations = []string{schema1}

// schema1: times are Unix nanoseconds of the server's clock and order nothing.
// A measure's values at one snapshot are one blob over a layout of places (see
// pack.go), not a row per number: 1,000 heads × 40 measures stay 40 rows.
const schema1 = `
CREATE TABLE runs (
	id      INTEGER PRIMARY KEY,
	name    TEXT    NOT NULL UNIQUE COLLATE NOCASE, -- a folder's name: some systems ignore case
	model   TEXT    NOT NULL DEFAULT '',
	started INTEGER NOT NULL,
	last    INTEGER NOT NULL,
	layers  INTEGER NOT NULL DEFAULT 0,
	heads   INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE snapshots (
	id       INTEGER PRIMARY KEY AUTOINCREMENT, -- order of arrival
	run      INTEGER NOT NULL REFERENCES runs(id),
	step     INTEGER NOT NULL,
	sample   INTEGER NOT NULL,
	received INTEGER NOT NULL,
	sha256   BLOB    NOT NULL,
	bytes    INTEGER NOT NULL,
	state    TEXT    NOT NULL CHECK (state IN ('received', 'analyzed', 'failed')),
	reason   TEXT    NOT NULL DEFAULT '',
	pruned   INTEGER NOT NULL DEFAULT 0,
	UNIQUE (run, step, sample)
);
CREATE INDEX pending ON snapshots(id) WHERE state = 'received';
CREATE TABLE measures (
	id   INTEGER PRIMARY KEY,
	run  INTEGER NOT NULL REFERENCES runs(id),
	name TEXT    NOT NULL,
	UNIQUE (run, name)
);
CREATE TABLE layouts (
	id     INTEGER PRIMARY KEY,
	sha256 BLOB NOT NULL UNIQUE, -- of places
	places TEXT NOT NULL         -- "L0H0\nL0H1\n…"
);
CREATE TABLE analyses (
	snapshot INTEGER PRIMARY KEY REFERENCES snapshots(id),
	detail   TEXT    NOT NULL,                      -- JSON
	places   INTEGER NOT NULL REFERENCES layouts(id), -- all, in the order of the values
	columns  INTEGER NOT NULL,                         -- rows of vals that belong to it
	layout   INTEGER NOT NULL REFERENCES layouts(id), -- of logits
	logits   BLOB    NOT NULL
);
CREATE TABLE vals (
	id       INTEGER PRIMARY KEY,
	snapshot INTEGER NOT NULL REFERENCES snapshots(id),
	measure  INTEGER NOT NULL REFERENCES measures(id),
	sample   INTEGER NOT NULL,
	step     INTEGER NOT NULL,
	layout   INTEGER NOT NULL REFERENCES layouts(id),
	data     BLOB    NOT NULL,
	nulls    BLOB    NOT NULL, -- after data, so that reading data stops before it
	UNIQUE (measure, sample, step, layout)
);
CREATE INDEX vals_of_snapshot ON vals(snapshot);
CREATE TABLE scalar_names (
	id   INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE
);
CREATE TABLE scalars (
	run  INTEGER NOT NULL REFERENCES runs(id),
	step INTEGER NOT NULL,
	data BLOB    NOT NULL,
	PRIMARY KEY (run, step)
) WITHOUT ROWID;
CREATE TABLE alerts (
	id        INTEGER PRIMARY KEY AUTOINCREMENT,
	run       INTEGER NOT NULL REFERENCES runs(id),
	code      TEXT    NOT NULL,
	place     TEXT    NOT NULL,
	step      INTEGER NOT NULL,
	severity  TEXT    NOT NULL,
	text      TEXT    NOT NULL,
	evidence  TEXT    NOT NULL,
	at        INTEGER NOT NULL,
	recovered INTEGER,
	UNIQUE (run, code, place, step)
);
CREATE INDEX alerts_by_step ON alerts(run, step);
CREATE TABLE deliveries (
	alert INTEGER NOT NULL REFERENCES alerts(id),
	sink  TEXT    NOT NULL,
	at    INTEGER NOT NULL,
	PRIMARY KEY (alert, sink)
) WITHOUT ROWID;
`

// migrate brings a database to the newest schema, one transaction for each step.
func migrate(ctx context.Context, c *sql.Conn, path string, steps []string) error {
	version, err := schemaVersion(ctx, c, path, len(steps))
	if err != nil {
		return err
	}
	for ; version < len(steps); version++ {
		tx, err := c.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, steps[version]+
			fmt.Sprintf(";PRAGMA user_version = %d; PRAGMA application_id = %d", version+1, applicationID))
		if err != nil {
			_ = tx.Rollback()
			return fmt.Errorf("%s: schema %d to %d: %w", path, version, version+1, err)
		}
		if err := tx.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// checkSchema refuses a database that only a migration would make readable.
func checkSchema(ctx context.Context, db *sql.DB, path string) error {
	version, err := schemaVersion(ctx, db, path, len(migrations))
	if err != nil {
		return named(path, err)
	}
	if version < len(migrations) {
		return &xerr.Unsupported{File: path, What: "schema", Found: version, Want: len(migrations),
			Hint: "eigenhead store repair DIR brings it up to date"}
	}
	return nil
}

type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// schemaVersion is the schema of a database, 0 for a new one. One that is not
// ours, or is newer than known, is refused.
func schemaVersion(ctx context.Context, q queryer, path string, known int) (int, error) {
	var version, id, tables int
	err := q.QueryRowContext(ctx, `SELECT (SELECT user_version FROM pragma_user_version),
		(SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)`).Scan(&version, &id, &tables)
	switch {
	case err != nil:
		return 0, err
	case version == 0 && id == 0 && tables == 0:
		return 0, nil
	case id != applicationID:
		return 0, &xerr.Format{File: path, What: "application id", Found: id, Want: applicationID,
			Hint: "this SQLite database is not a store of eigenhead"}
	case version > known:
		return 0, &xerr.Unsupported{File: path, What: "schema", Found: version, Want: fmt.Sprintf("at most %d", known),
			Hint: "a newer eigenhead wrote this store: use that one"}
	}
	return version, nil
}
