// Package testshared finds the test material that lives beside the repository
// and not in it. Tests that need it are skipped, by name, where it is absent.
package testshared

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Root returns $EIGENHEAD_SHARED, or the folder "shared" beside the repository,
// and whether it is there.
func Root() (string, bool) {
	dir := os.Getenv("EIGENHEAD_SHARED")
	if dir == "" {
		_, file, _, _ := runtime.Caller(0)
		dir = filepath.Join(filepath.Dir(file), "..", "..", "..", "shared")
	}
	info, err := os.Stat(dir)
	return dir, err == nil && info.IsDir()
}

// Dir returns a path below the shared folder and skips the test where it is absent.
func Dir(t testing.TB, elem ...string) string {
	t.Helper()
	root, _ := Root()
	path := filepath.Join(append([]string{root}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("shared material %s is absent (set EIGENHEAD_SHARED)", filepath.Join(elem...))
	}
	return path
}

// SmolLM2 returns the path of the real model that CI fetches into the cache
// folder, and skips the test where it is absent.
func SmolLM2(t testing.TB) string {
	t.Helper()
	return cached(t, "SmolLM2-135M-Instruct.Q4_1.gguf", "scripts/fetch-smollm2")
}

// MiniLM returns the folder of the real encoder that CI fetches into the cache
// folder, and skips the test where it is absent.
func MiniLM(t testing.TB) string {
	t.Helper()
	return cached(t, "all-MiniLM-L6-v2", "scripts/fetch-minilm")
}

func cached(t testing.TB, name, script string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("no cache folder: %s is absent", name)
	}
	path := filepath.Join(cache, "eigenhead", "models", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is absent: %s gets it", name, script)
	}
	return path
}
