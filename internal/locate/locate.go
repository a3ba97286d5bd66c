// Package locate turns the name of a model, as people type it, into a path on
// this machine: a path, a path with ~, org/name from the Hugging Face cache or LM
// Studio's folder, ollama:name[:tag] from Ollama's store. Nothing is ever
// downloaded: where a name is not there, the error lists what is. It knows
// nothing of what is in the files.
package locate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// Model is one model that a store of this machine holds.
type Model struct {
	Name  string // as Path takes it: "org/name" or "ollama:name:tag"
	Store string // "Hugging Face", "LM Studio" or "Ollama"
	Path  string // file or folder
}

// store finds the models of one program's folder. A folder that is absent holds none.
type store struct {
	name string
	list func(env Env) []Model
}

// stores is every store, in the order in which a name is looked up.
var stores = []store{
	{"Hugging Face", huggingFace}, // huggingface.go
	{"LM Studio", lmStudio},       // lmstudio.go
	{"Ollama", ollama},            // ollama.go
}

// Env is what the lookup knows of the user's environment.
type Env struct {
	Home   string
	Getenv func(string) string
}

// User returns the environment of the process.
func User() Env {
	home, _ := os.UserHomeDir() // absent: stores in it are empty
	return Env{Home: home, Getenv: os.Getenv}
}

// Path returns the path that a name stands for. A name that exists as a path is
// that path; then come the stores.
//
// Errors: *xerr.Usage that lists what the stores hold, for a name that is neither.
// A name that looks like a path (a separator at its start, or a file ending) and
// does not exist is an error of the file system, which wraps fs.ErrNotExist.
func (e Env) Path(name string) (string, error) {
	if rest, ok := strings.CutPrefix(name, "~"); ok && e.Home != "" && (rest == "" || rest[0] == '/' || rest[0] == filepath.Separator) {
		name = filepath.Join(e.Home, rest)
	}
	_, err := os.Stat(name)
	if err == nil {
		return name, nil
	}
	for _, m := range e.Models() {
		if m.Name == name || m.Name == name+":latest" {
			return m.Path, nil
		}
	}
	if !isName(name) {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return "", e.unknown(name)
}

// Models lists what every store holds, each store's models by name.
func (e Env) Models() []Model {
	var all []Model
	for _, s := range stores {
		found := s.list(e)
		slices.SortFunc(found, func(a, b Model) int { return strings.Compare(a.Name, b.Name) })
		all = append(all, found...)
	}
	return all
}

// isName reports whether a name may be meant as that of a model in a store.
func isName(name string) bool {
	if strings.HasPrefix(name, "ollama:") {
		return true
	}
	org, model, ok := strings.Cut(name, "/")
	return ok && org != "" && org != "." && org != ".." && model != "" && !strings.ContainsAny(model, `/\`) &&
		!strings.HasSuffix(model, ".gguf") && !strings.HasSuffix(model, ".safetensors")
}

func (e Env) unknown(name string) error {
	have := "no model in the stores of Hugging Face, LM Studio and Ollama"
	if models := e.Models(); len(models) > 0 {
		var names []string
		for _, m := range models {
			names = append(names, m.Name)
		}
		have = "one of " + strings.Join(names, ", ")
	}
	return &xerr.Usage{Flag: name, Found: "neither a path nor a model on this machine", Want: have,
		Hint: "nothing is downloaded: fetch the model with its own tool first"}
}
