package eigenhead

import (
	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/checkpoint"
	"github.com/eigenhead/eigenhead/internal/locate"
)

// Found is a model in a store of this machine, and whether it can be opened.
type Found struct {
	Name       string // as Scan takes it
	Store      string
	Family     string
	DType      string // counts of tensor types, most frequent first
	Bytes      int64
	Parameters int64
	Problem    error // why it cannot be opened; nil: it can
}

// Models lists what Hugging Face's cache, LM Studio's folder and Ollama's store on
// this machine hold. Each is opened, none is read: a checkpoint that cannot be
// scanned says why. Nothing is downloaded.
func Models() []Found {
	var all []Found
	for _, m := range locate.User().Models() {
		all = append(all, look(m))
	}
	return all
}

func look(m locate.Model) Found {
	f := Found{Name: m.Name, Store: m.Store}
	c, err := checkpoint.Open(m.Path)
	if err != nil {
		f.Problem = err
		return f
	}
	defer func() { _ = c.Close() }()
	f.Bytes, f.DType = c.Size(), types(c.DTypes())
	model, err := arch.Open(c)
	if err != nil {
		f.Problem = err
		return f
	}
	f.Family, f.Parameters = model.Family, model.Parameters
	return f
}
