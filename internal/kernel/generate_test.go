package kernel

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The committed assembly is what the generator writes today.
func TestAssemblyIsGenerated(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the generator")
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "asm.bin")
	build := exec.Command("go", "-C", "asm", "build", "-o", bin, ".")
	build.Env = append(os.Environ(), "GOOS=", "GOARCH=", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		if exec.Command("go", "-C", "asm", "mod", "download", "github.com/mmcloughlin/avo").Run() != nil {
			t.Skip("needs the module github.com/mmcloughlin/avo")
		}
		t.Fatalf("building the generator: %v\n%s", err, out)
	}
	run := exec.Command(bin, "-out", "kernel_amd64.s", "-stubs", "stubs_amd64.go", "-pkg", "kernel")
	run.Dir = dir
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("generator: %v\n%s", err, out)
	}
	for _, name := range []string{"kernel_amd64.s", "stubs_amd64.go"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		have, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, want) {
			t.Errorf("%s is not what the generator writes; run go generate", name)
		}
	}
}
