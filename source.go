package eigenhead

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/capture"
	"github.com/eigenhead/eigenhead/checkpoint"
	"github.com/eigenhead/eigenhead/forward"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/demo"
	"github.com/eigenhead/eigenhead/internal/locate"
	"github.com/eigenhead/eigenhead/report"
	"github.com/eigenhead/eigenhead/tokenizer"
)

// source is something that hands over layers: a model that runs, or a capture.
// Exactly one of model and capture is set.
type source struct {
	name string // base name, or Demo
	path string

	ckpt  *checkpoint.Checkpoint
	model *arch.Model

	capture *capture.Capture
}

// open opens a model file or folder, a capture file, or the embedded demo. A name
// that is no path is looked up in the stores of this machine.
func open(name string) (*source, error) {
	path, err := resolve(name)
	if err != nil {
		return nil, err
	}
	if path != Demo {
		isCapture, err := capture.IsCapture(path)
		if err != nil {
			return nil, err
		}
		if isCapture {
			c, err := capture.Open(path)
			if err != nil {
				return nil, err
			}
			return &source{name: baseName(name), path: path, capture: c}, nil
		}
	}
	return openModel(name)
}

// resolve turns a name into the path that it stands for.
func resolve(name string) (string, error) {
	if name == Demo {
		return Demo, nil
	}
	return locate.User().Path(name)
}

func openModel(name string) (*source, error) {
	path, err := resolve(name)
	if err != nil {
		return nil, err
	}
	var c *checkpoint.Checkpoint
	if path == Demo {
		c, err = checkpoint.OpenFS(demo.FS(), ".")
	} else {
		c, err = checkpoint.Open(path)
	}
	if err != nil {
		return nil, err
	}
	m, err := arch.Open(c)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return &source{name: baseName(name), path: path, ckpt: c, model: m}, nil
}

func (s *source) close() {
	if s.ckpt != nil {
		_ = s.ckpt.Close()
	}
	if s.capture != nil {
		_ = s.capture.Close()
	}
}

// tokenizer returns the model's own tokenizer.
func (s *source) tokenizer() (*tokenizer.Tokenizer, error) {
	return tokenizerOf(s.path, s.ckpt)
}

func tokenizerOf(path string, c *checkpoint.Checkpoint) (*tokenizer.Tokenizer, error) {
	kv := c.KV()
	if kv == nil {
		return tokenizer.FromFolder(path, c.File)
	}
	tok, err := tokenizer.FromGGUF(kv)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return tok, nil
}

// walk says which layers to hand over, and of what.
type walk struct {
	tokens   []int // of a model; a capture has its own
	layers   []int
	logits   bool                    // go on to the last layer and the logits
	progress func(done, total int64) // nil: not told
	ready    func() error            // asked before a layer's numbers are copied or read; nil: not
}

// layers hands layers to visit, in order. For a model it runs the tokens through and
// returns what the forward pass says of the text.
func (s *source) layers(ctx context.Context, w walk, visit func(*head.Layer) error) (*forward.Output, error) {
	if s.model != nil {
		return forward.Run(ctx, s.model, w.tokens,
			&forward.Options{Layers: w.layers, NoLogits: !w.logits, Progress: w.progress, Ready: w.ready}, visit)
	}
	for n, i := range w.layers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if w.ready != nil {
			if err := w.ready(); err != nil {
				return nil, err
			}
		}
		l, err := s.capture.Layer(i)
		if err != nil {
			return nil, err
		}
		if w.progress != nil {
			w.progress(int64(n+1), int64(len(w.layers)))
		}
		if err := visit(l); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// layerNumbers returns the layers that the source can hand over, ascending.
func (s *source) layerNumbers() []int {
	if s.capture != nil {
		return s.capture.Layers()
	}
	all := make([]int, s.model.Layers)
	for i := range all {
		all[i] = i
	}
	return all
}

// describe fills the report's source and model sections.
func (s *source) describe(whole bool) (report.Source, report.Model, error) {
	var src report.Source
	var err error
	if s.capture != nil {
		src = report.Source{Path: s.name, Format: "capture", DType: types(s.capture.DTypes())}
		src.SHA256, src.SHA256Of, err = s.capture.SHA256(whole)
		return src, describeCapture(s.capture), err
	}
	src = report.Source{Path: s.name, Format: s.ckpt.Format(), DType: types(s.ckpt.DTypes())}
	src.SHA256, src.SHA256Of, err = s.ckpt.SHA256(whole)
	m := s.model
	d := report.Model{
		Name: m.Name, Family: m.Family, Layers: m.Layers, Heads: m.Heads, KVHeads: m.KVHeads, HeadDim: m.HeadDim,
		Width: m.Width, Vocab: m.Vocab, Parameters: m.Parameters, Context: m.Context, Position: m.Position,
		Norm: m.Norm, QKNorm: m.QKNorm, Defaults: m.Defaults,
	}
	if s.path == Demo {
		d.Name = Demo
	}
	if m.Rope != nil {
		d.RopeBase = m.Rope.Base
	}
	return src, d, err
}

// types writes counts of tensor types, most frequent first.
func types(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, n := range names {
		parts = append(parts, fmt.Sprintf("%s (%d)", n, counts[n]))
	}
	return strings.Join(parts, ", ")
}

func baseName(path string) string { return filepath.Base(filepath.Clean(path)) }
