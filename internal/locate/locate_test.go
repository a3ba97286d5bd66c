package locate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// machine lays out the stores of a user in a temporary folder.
func machine(t *testing.T) Env {
	t.Helper()
	home := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const hub = ".cache/huggingface/hub/"
	write(hub+"models--EleutherAI--pythia-160m/refs/main", "abc123\n")
	write(hub+"models--EleutherAI--pythia-160m/blobs/f00", "{}")
	write(hub+"models--EleutherAI--pythia-160m/snapshots/old/config.json", "{}")
	if err := os.MkdirAll(filepath.Join(home, hub, "models--EleutherAI--pythia-160m/snapshots/abc123"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../blobs/f00", filepath.Join(home, hub, "models--EleutherAI--pythia-160m/snapshots/abc123/config.json")); err != nil {
		t.Skip("no symbolic links here")
	}
	write(hub+"models--gpt2/snapshots/only/config.json", "{}")
	write(hub+"models--broken--one/refs/main", "../../../../etc")
	write(".ollama/models/manifests/registry.ollama.ai/library/smollm2/135m",
		`{"layers": [{"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:00"}, {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:beef"}]}`)
	write(".ollama/models/manifests/registry.ollama.ai/library/llama3.2/latest",
		`{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:cafe"}]}`)
	write(".ollama/models/manifests/registry.ollama.ai/someone/tiny/v1", `not json`)
	write(".lmstudio/models/lmstudio-community/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8_0.gguf", "GGUF")
	write("mine/model.gguf", "GGUF")
	return Env{Home: home, Getenv: func(string) string { return "" }}
}

func TestNamesThatPeopleType(t *testing.T) {
	e := machine(t)
	for name, want := range map[string]string{
		filepath.Join(e.Home, "mine/model.gguf"): "mine/model.gguf",
		"~/mine/model.gguf":                      "mine/model.gguf",
		"EleutherAI/pythia-160m":                 ".cache/huggingface/hub/models--EleutherAI--pythia-160m/snapshots/abc123",
		"gpt2":                                   ".cache/huggingface/hub/models--gpt2/snapshots/only",
		"ollama:smollm2:135m":                    ".ollama/models/blobs/sha256-beef",
		"ollama:llama3.2":                        ".ollama/models/blobs/sha256-cafe",
		"lmstudio-community/Qwen3-0.6B-GGUF":     ".lmstudio/models/lmstudio-community/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8_0.gguf",
	} {
		got, err := e.Path(name)
		if err != nil || got != filepath.Join(e.Home, want) {
			t.Errorf("%s: %s, %v; want %s", name, got, err, want)
		}
	}
}

func TestUnknownNamesListWhatIsThere(t *testing.T) {
	e := machine(t)
	for _, name := range []string{"EleutherAI/pythia-70m", "ollama:nothing", "broken/one"} {
		_, err := e.Path(name)
		var usage *xerr.Usage
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), "EleutherAI/pythia-160m") || !strings.Contains(err.Error(), "ollama:smollm2:135m") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, path := range []string{"./absent.gguf", "absent.safetensors", "/absent/folder", "a/b/c", "sub/absent.gguf"} {
		if _, err := e.Path(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want a path that does not exist", path, err)
		}
	}
}

func TestAMachineWithoutStoresHasNoModels(t *testing.T) {
	e := Env{Home: t.TempDir(), Getenv: func(string) string { return "" }}
	if m := e.Models(); len(m) != 0 {
		t.Errorf("found %v", m)
	}
	if _, err := e.Path("org/name"); err == nil {
		t.Error("found a model on an empty machine")
	}
}
