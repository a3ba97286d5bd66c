package arch

import (
	"fmt"

	"github.com/eigenhead/eigenhead/head"
)

// Model is what a checkpoint says that it is: its shape, its conventions and
// where each weight lies. No weight is in memory. Forward computes
//
//	x ← EmbeddingNorm(EmbeddingIn·(EmbeddingScale·embedding) + position + token type)
//	x ← Block(x), for each block
//	logits = cap(Head·HeadIn·FinalNorm(x) + HeadBias)
//
// without the parts that a model does not have.
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
	FFN     int // hidden width of the MLP, or of one expert
	Vocab   int
	Context int // longest trained context; a hard limit where positions are learned

	Position   string // "rope", "learned", "alibi", or "none"
	Rope       *Rope  // of most layers (Block.Rope); nil: no layer turns
	Norm       string // "rms" or "layer"
	NormEps    float64
	QKNorm     bool       // q and k pass a norm before RoPE
	Activation Activation // of the MLP
	Scale      float64    // factor on q·k, before any factor of a single layer (Block.Scale)
	Tied       bool       // the output head is the embedding

	Parameters int64    // elements of the weights in use, each tensor once
	Defaults   []string // what the file leaves out and the reference implementation fills in
	Warnings   []string // what the user should know about the file

	Embedding      Weight  // [vocab, width], or of its own width before EmbeddingIn
	EmbeddingScale float64 // factor on embeddings; 1: none
	EmbeddingIn    *Linear // nil: none
	Positions      *Weight // [positions, width] where they are learned
	FirstPosition  int     // row of Positions that the first token takes
	TokenTypes     *Weight // row 0 is added to every token; nil: none
	EmbeddingNorm  *Norm   // nil: none
	Blocks         []Block
	FinalNorm      *Norm   // nil: none
	HeadIn         *Linear // before the output head; nil: none
	Head           *Weight // [vocab, width]; the embedding if Tied; nil: an encoder, without logits
	HeadBias       *Vector // nil: none
	LogitSoftcap   float64 // cap·tanh(logit/cap); 0: none

	plan plan
}

// Block is one transformer layer, in the order in which it computes. A norm that
// is nil changes nothing:
//
//	a = AttnWriteNorm(Out·attention(QKV·AttnNorm(x)))
//	y = AttnAddNorm(x + a)
//	f = FFNWriteNorm(MLP(FFNNorm(y)))     Parallel: MLP(FFNNorm(x))
//	x ← FFNAddNorm(y + f)
//
// The MLP is Down·(act(Gate·) ⊙ Up·), Down·act(Up·) without Gate, or Experts.
type Block struct {
	AttnNorm      *Norm
	QKV           []Linear // stacked: all query heads, then all key heads, then all value heads
	QNorm, KNorm  *Norm    // before RoPE
	Rope          *Rope    // nil: q and k do not turn
	Scale         float64
	Softcap       float64 // cap·tanh(score/cap); 0: none
	Mask          head.Mask
	Sinks         *Vector   // [heads] logits of a key that has no value; nil: none
	Slopes        []float64 // ALiBi by head: −slope·(i−j) is added to scores; nil: none
	Out           Linear
	AttnWriteNorm *Norm
	AttnAddNorm   *Norm

	Parallel     bool
	FFNNorm      *Norm
	Gate         *Linear // nil: the MLP has no gate
	Up, Down     Linear
	Experts      *Experts // nil: one MLP, else Gate, Up and Down are empty
	FFNWriteNorm *Norm
	FFNAddNorm   *Norm
}

// Experts is a mixture of MLPs: of the softmax of Router's outputs each token
// takes the Active largest, and adds their MLPs with those weights.
type Experts struct {
	Router    Linear
	Active    int
	Normalize bool     // the weights of the active experts are divided by their sum
	Down      []Linear // by expert
	Gate, Up  []Linear // by expert; nil where there is GateUp
	GateUp    []Linear // by expert: the outputs of Gate and Up by turns, as gpt-oss stores them
}

// Norm is a normalization with its gain and bias. It runs over Width values at a
// time: the whole row, or one head of it.
type Norm struct {
	RMS   bool // root mean square; else mean and variance
	Eps   float64
	Width int
	Gain  Vector  // of Width values, or one for each value of the row
	Bias  *Vector // nil: none
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
	more := func(on bool, name, text string) {
		if on {
			d = append(d, [2]string{name, text})
		}
	}
	more(m.QKNorm, "qk norm", m.Norm+" of q and k before the dot product")
	more(m.plan.softcap > 0, "score softcap", fmt.Sprint(m.plan.softcap))
	more(m.plan.experts > 0, "experts", fmt.Sprintf("%d of %d", m.plan.active, m.plan.experts))
	more(m.Tied, "output head", "tied to the embedding")
	more(m.Head == nil, "output head", "none")
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
