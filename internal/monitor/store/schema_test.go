package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// rawExec changes the database of a store that is closed.
func rawExec(t testing.TB, dir string, queries ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, databaseName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, q := range queries {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// closed makes a store with one analyzed snapshot and closes it.
func closedStore(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, key(1), "one")
	if err := errors.Join(s.SaveAnalysis(context.Background(), sampleAnalysis(key(1), 4)), s.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestOtherDatabasesAreRefused(t *testing.T) {
	for _, c := range []struct{ name, query, want string }{
		{"newer schema", `PRAGMA user_version = 99`, "schema: 99, want at most 1"},
		{"not ours", `PRAGMA application_id = 7`, "application id: 7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := closedStore(t)
			rawExec(t, dir, c.query)
			for _, opts := range []*Options{nil, {ReadOnly: true}} {
				_, err := Open(dir, opts)
				if err == nil || !xerr.Input(err) || !strings.Contains(err.Error(), c.want) || xerr.Hint(err) == "" {
					t.Errorf("%+v: %v, want %q", opts, err, c.want)
				}
			}
		})
	}
	t.Run("no database at all", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, databaseName), []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
		var corrupt *ErrCorrupt
		if _, err := Open(dir, nil); !errors.As(err, &corrupt) {
			t.Errorf("%v, want *ErrCorrupt", err)
		}
	})
	t.Run("nothing to read", func(t *testing.T) {
		var usage *xerr.Usage
		if _, err := Open(t.TempDir(), &Options{ReadOnly: true}); !errors.As(err, &usage) {
			t.Errorf("%v, want *xerr.Usage", err)
		}
	})
}

// TestMigrations runs made-up steps: each once, in order, kept by the version, and
// one that fails leaves the schema before it.
func TestMigrations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	db, err := sql.Open("sqlite", dsn(path, false))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	c, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	steps := []string{`CREATE TABLE t (x)`, `INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)`}
	for _, n := range []int{1, 2, 2} {
		if err := migrate(ctx, c, path, steps[:n]); err != nil {
			t.Fatal(err)
		}
	}
	broken := append(steps, `INSERT INTO t VALUES (3); INSERT INTO absent VALUES (4)`)
	if err := migrate(ctx, c, path, broken); err == nil || !strings.Contains(err.Error(), "schema 2 to 3") {
		t.Errorf("a broken step: %v", err)
	}
	var rows, version int
	err = c.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM t), (SELECT user_version FROM pragma_user_version)`).Scan(&rows, &version)
	if err != nil || rows != 2 || version != 2 {
		t.Errorf("%d rows, version %d, want 2 and 2 (%v)", rows, version, err)
	}
}

// TestAReaderDoesNotMigrate: a store of an older schema is refused to readers.
func TestAReaderDoesNotMigrate(t *testing.T) {
	dir := closedStore(t)
	rawExec(t, dir, `PRAGMA user_version = 0`)
	var unsupported *xerr.Unsupported
	if _, err := Open(dir, &Options{ReadOnly: true}); !errors.As(err, &unsupported) {
		t.Errorf("%v, want *xerr.Unsupported", err)
	}
}
