package arch

import (
	"fmt"

	"github.com/eigenhead/eigenhead/head"
)

// Model is what a checkpoint says that it is: its shape, its conventions and
// where each weight lies. No weight is in memory.
type Model struct {
	Path   string // of the checkpoint, as it was given
	Name   string
	Family string
	GGUF   bool // read from GGUF: llama.cpp's conventions apply

	Layers  int
	Heads   int // query heads of a layer
	KVHeads int // key and value heads of a layer
	HeadDim int // of q, k and v
	Width   int // of the residual stream
	FFN     int // hidden width of the MLP
	Vocab   int
	Context int // longest trained context; a hard limit where positions are learned

	Position   string // "rope" or "learned"
	Rope       *Rope  // nil unless Position is "rope"
	Norm       string // "rms" or "layer"
	NormEps    float64
	QKNorm     bool       // q and k pass an RMS norm per head before RoPE
	Activation Activation // of the MLP
	Scale      float64    // factor on q·k, before any factor of a single layer (Block.Scale)
	Tied       bool       // the output head is the embedding

	Parameters int64    // elements of the weights in use, each tensor once
	Defaults   []string // what the file leaves out and the reference implementation fills in
	Warnings   []string // what the user should know about the file

	Embedding Weight  // [vocab, d_model]
	Positions *Weight // [positions, d_model] where they are learned
	Blocks    []Block
	FinalNorm Norm
	Head      Weight // [vocab, d_model]; the embedding if Tied

	modelScaleByLayer bool // GPT-2's scale_attn_by_inverse_layer_idx
	attnBias, mlpBias bool
	windows           []head.Mask // by layer; nil: causal everywhere
}

// Block is one transformer layer, in the order in which it computes:
//
//	x ← x + Out·attention(QKV·AttnNorm(x))
//	x ← x + Down·f(FFNNorm(x)),  f = act(Gate·) ⊙ Up·, or act(Up·) without Gate
type Block struct {
	AttnNorm     Norm
	QKV          []Linear // stacked: all query heads, then all key heads, then all value heads
	QNorm, KNorm *Vector  // [head_dim], nil unless Model.QKNorm
	Out          Linear
	FFNNorm      Norm
	Gate         *Linear // nil: the MLP has no gate
	Up, Down     Linear
	Scale        float64
	Mask         head.Mask
}

// Norm is a normalization with its gain and, for layer norms, its bias.
type Norm struct {
	Gain Vector
	Bias *Vector // nil for RMS norms
}

// Linear is y = W x + b.
type Linear struct {
	Weight
	Bias *Vector // nil: none
}

// Describe returns the model in words: pairs of a name and its value, in the
// order in which a reader wants them.
func (m *Model) Describe() [][2]string {
	d := [][2]string{
		{"family", m.Family},
		{"layers", fmt.Sprint(m.Layers)},
		{"heads", fmt.Sprint(m.Heads)},
		{"kv heads", fmt.Sprint(m.KVHeads)},
		{"head dimension", fmt.Sprint(m.HeadDim)},
		{"width", fmt.Sprint(m.Width)},
		{"vocabulary", fmt.Sprint(m.Vocab)},
		{"parameters", fmt.Sprint(m.Parameters)},
		{"context", fmt.Sprint(m.Context)},
		{"position", m.position()},
		{"norm", fmt.Sprintf("%s, eps %g", m.Norm, m.NormEps)},
		{"activation", m.Activation.String()},
		{"scale", fmt.Sprintf("%.6g", m.Scale)},
	}
	if m.QKNorm {
		d = append(d, [2]string{"qk norm", "rms per head"})
	}
	if m.Tied {
		d = append(d, [2]string{"output head", "tied to the embedding"})
	}
	return d
}

func (m *Model) position() string {
	if m.Rope == nil {
		return m.Position
	}
	return fmt.Sprintf("rope, base %g%s", m.Rope.Base, m.Rope.scaling())
}

// qkvRows is the number of rows of the stacked projection.
func (m *Model) qkvRows() (q, kv int) { return m.Heads * m.HeadDim, m.KVHeads * m.HeadDim }
