// Package arch turns a checkpoint into a Model: which family it is, what its
// configuration says, and which tensor is which weight of which layer. Every
// configuration key that changes the arithmetic is honored or refused by name;
// a default is taken only where the reference implementation has one, and is
// listed. It runs nothing and knows nothing of measures.
package arch

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/checkpoint"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// family is one kind of model: how its configuration and its tensors are read
// from either format. A family's file reads top to bottom: keys, names, layers.
type family struct {
	Name       string
	ModelTypes []string // model_type in config.json
	Classes    []string // architectures in config.json that we can run
	GGUF       string   // general.architecture
	Config     func(m *Model, s *settings)
	Metadata   func(m *Model, s *settings)
	Names      func(m *Model, f *finder) naming
}

// families is every family that can be opened.
var families = []*family{
	llama,   // llama.go
	gpt2,    // gpt2.go
	gptneox, // gptneox.go
	opt,     // opt.go
	phi,     // phi.go
	phi3,    // phi3.go
	gptj,    // gptj.go
	stablelm,
	starcoder2,
	olmo2,
	smollm3,
	qwen2, // qwen2.go
	qwen3, // qwen3.go
	falcon,
	bloom,
	bert, // bert.go
	roberta,
	mixtral, // moe.go
	qwen3moe,
	gptoss,
	gemma, // gemma.go
	gemma2,
	gemma3,
}

// Families returns the names of the supported families, in the order of the list.
func Families() []string {
	var names []string
	for _, f := range families {
		names = append(names, f.Name)
	}
	return names
}

// GGUFFamilies returns the names of those that GGUF files can hold.
func GGUFFamilies() []string {
	var names []string
	for _, f := range families {
		if f.GGUF != "" {
			names = append(names, f.Name)
		}
	}
	return names
}

// Open reads the configuration of a checkpoint and finds every tensor of the
// model, with its shape checked. No weight is read, but for the comparison of a
// saved output head with the embedding that it is declared to equal. The model
// reads through the checkpoint: keep it open as long as the model is in use.
//
// Errors: *xerr.Format for a missing or malformed key, a missing tensor or a
// wrong shape; *xerr.Unsupported for a family, class, key or tensor that is
// sound but not ours, by name. Cost: O(number of tensors).
func Open(c *checkpoint.Checkpoint) (*Model, error) {
	var m *Model
	var err error
	if c.Format() == "gguf" {
		m, err = openGGUF(c)
	} else {
		m, err = openConfig(c)
	}
	if err != nil {
		return nil, err
	}
	m.Path = c.Path
	return m, nil
}

// openConfig reads a model whose configuration is a config.json.
func openConfig(c *checkpoint.Checkpoint) (*Model, error) {
	file := configPath(c)
	if c.Config() == nil {
		return nil, &xerr.Format{File: file, Found: "missing", Want: "the configuration of the model beside its weights",
			Hint: "safetensors hold numbers only: copy config.json from where the weights came from"}
	}
	s, err := parseSettings(file, c.Config())
	if err != nil {
		return nil, err
	}
	fam, err := detect(s)
	if err != nil {
		return nil, err
	}
	m := &Model{Family: fam.Name, Name: c.Name()}
	tied := fam.readConfig(m, s)
	if err := s.done(); err != nil {
		return nil, err
	}
	m.Defaults = s.defaults
	return assemble(c, m, fam, tied, filepath.Base(file))
}

// openGGUF reads a model whose configuration is GGUF metadata.
func openGGUF(c *checkpoint.Checkpoint) (*Model, error) {
	const key = "general.architecture"
	name, err := c.KV().String(key)
	if errors.Is(err, checkpoint.ErrMissingKey) {
		return nil, &xerr.Format{File: c.Path, What: "key " + quote(key), Found: "missing", Want: "the family of the model"}
	}
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(families, func(f *family) bool { return f.GGUF == name && name != "" })
	if i < 0 {
		return nil, unknownFamily(c.Path, key, name)
	}
	s := metadataSettings(c.Path, name+".", c.KV())
	m := &Model{Family: families[i].Name, Name: c.Name(), GGUF: true}
	if title, err := c.KV().String("general.name"); err == nil && title != "" {
		m.Name = title
	}
	families[i].Metadata(m, s)
	if err := s.done(); err != nil {
		return nil, err
	}
	m.Defaults = s.defaults
	return assemble(c, m, families[i], tieIfAbsent, "the metadata")
}

// assemble finds the tensors once the configuration is read.
func assemble(c *checkpoint.Checkpoint, m *Model, fam *family, tied tying, source string) (*Model, error) {
	f := newFinder(c, source)
	build(m, f, fam.Names(m, f), tied)
	if f.err != nil {
		return nil, f.err
	}
	if err := f.leftOver(m); err != nil {
		return nil, err
	}
	return m, nil
}

// readConfig reads config.json through the family and says how the output head
// relates to the embedding.
func (fam *family) readConfig(m *Model, s *settings) tying {
	fam.Config(m, s)
	if m.Tied {
		return tieAlways
	}
	return tieNever
}

// configPath is where the config.json of a safetensors checkpoint is or should be.
func configPath(c *checkpoint.Checkpoint) string {
	dir := c.Path
	if ext := strings.ToLower(filepath.Ext(dir)); ext == ".safetensors" || ext == ".json" {
		dir = filepath.Dir(dir)
	}
	return filepath.Join(dir, "config.json")
}

func quote(s string) string { return fmt.Sprintf("%q", s) }

// parseSettings reads a config.json.
func parseSettings(file string, data []byte) (*settings, error) {
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	var values map[string]any
	if err := dec.Decode(&values); err != nil {
		return nil, &xerr.Format{File: file, Found: err, Want: "a JSON object"}
	}
	if values == nil {
		return nil, &xerr.Format{File: file, Found: "null", Want: "a JSON object"}
	}
	return newSettings(file, "", values), nil
}
