package eigenhead_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/eigenhead/eigenhead"
	"github.com/eigenhead/eigenhead/internal/testshared"
)

// A model in Hugging Face's cache is links into a folder of blobs; one in Ollama's
// store is a blob without an ending.
func TestModelsInStoresOpenByName(t *testing.T) {
	dir := testshared.Dir(t, "models", "stories260K")
	home := t.TempDir()
	for _, v := range []string{"HF_HUB_CACHE", "XDG_CACHE_HOME", "OLLAMA_MODELS"} {
		t.Setenv(v, "")
	}
	t.Setenv("HOME", home)
	t.Setenv("HF_HOME", filepath.Join(home, "hf"))
	snapshot := filepath.Join(home, "hf", "hub", "models--karpathy--tinyllamas", "snapshots", "0a1b")
	blobs := filepath.Join(home, ".ollama", "models", "blobs")
	manifests := filepath.Join(home, ".ollama", "models", "manifests", "registry.ollama.ai", "library", "stories")
	for _, d := range []string{snapshot, blobs, manifests} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := func(from, to string) {
		if err := os.Symlink(from, to); err != nil {
			t.Skip("no symbolic links here")
		}
	}
	for _, f := range []string{"config.json", "model.safetensors"} {
		link(filepath.Join(dir, f), filepath.Join(snapshot, f))
	}
	link(filepath.Join(dir, "stories260K.gguf"), filepath.Join(blobs, "sha256-cafe"))
	manifest := `{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:cafe"}]}`
	if err := os.WriteFile(filepath.Join(manifests, "latest"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	found := eigenhead.Models()
	if len(found) != 2 {
		t.Fatalf("found %+v, want two models", found)
	}
	for _, f := range found {
		if f.Problem != nil || f.Family != "llama" {
			t.Errorf("%s: %s, %v", f.Name, f.Family, f.Problem)
		}
	}
	ids := writeIDs(t, "[1, 403, 407, 261, 378]")
	for _, name := range []string{"karpathy/tinyllamas", "ollama:stories"} {
		if r := scan(t, name, &eigenhead.Options{Tokens: ids, Layers: "0"}); len(r.Heads) != 8 {
			t.Errorf("%s: %d heads", name, len(r.Heads))
		}
	}
}
