package eigenhead_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead"
)

// referenceScript makes a reference of each folder given, in one Python: loading
// PyTorch takes longer than the models do. 24 ids from 2 on, for 1 may be padding.
const referenceScript = `
import json, pathlib, sys
from eigenhead import reference
out = pathlib.Path(sys.argv[1])
(out / "ids.json").write_text(json.dumps([2 + 7 * i % 30 for i in range(24)]))
for model in sys.argv[2:]:
    rc = reference.main([model, str(out / pathlib.Path(model).name) + ".safetensors", "--tokens", str(out / "ids.json")])
    assert rc == 0, model
`

// python returns the Python that $EIGENHEAD_PYTHON names, and skips the test where
// none is named or it lacks a module.
func python(t *testing.T, modules ...string) string {
	t.Helper()
	name := os.Getenv("EIGENHEAD_PYTHON")
	if name == "" {
		t.Skip("EIGENHEAD_PYTHON names no Python with torch and transformers")
	}
	for _, m := range modules {
		if out, err := exec.Command(name, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('"+m+"') is None)").CombinedOutput(); err != nil {
			t.Skipf("%s lacks the module %s: %v %s", name, m, err, out)
		}
	}
	return name
}

// Every family's small model, as transformers runs it today: the recorded numbers
// in forward/testdata are of the version that they were made with.
func TestPythonReferencesOfEveryFamilyAgree(t *testing.T) {
	interpreter := python(t, "torch", "transformers", "safetensors")
	configs, err := filepath.Glob(filepath.Join("forward", "testdata", "*", "config.json"))
	if err != nil || len(configs) == 0 {
		t.Fatalf("no models: %v", err)
	}
	models := []string{filepath.Join("internal", "demo")}
	for _, c := range configs {
		if testing.Short() && !strings.Contains(c, "gemma2") {
			continue
		}
		models = append(models, filepath.Dir(c))
	}
	dir := t.TempDir()
	cmd := exec.Command(interpreter, append([]string{"-c", referenceScript, dir}, models...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join("clients", "python"), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, m := range models {
		t.Run(filepath.Base(m), func(t *testing.T) { agreesWithReference(t, m, filepath.Join(dir, filepath.Base(m)+".safetensors")) })
	}
}

// agreesWithReference holds q, k and v to 1e-4 and everything else to 1e-3.
func agreesWithReference(t *testing.T, model, reference string) {
	all, err := eigenhead.Verify(context.Background(), model, reference, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		tolerance := 1e-3
		if strings.Contains("qkv", d.Tensor) {
			tolerance = 1e-4
		}
		if d.Exceeds(tolerance) {
			t.Errorf("%+v, want at most %g", d, tolerance)
		}
	}
}
