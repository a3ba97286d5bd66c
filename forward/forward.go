// Package forward runs a model over one sequence in plain float32 and hands each
// attention layer to a visitor: q, k and v exactly as they enter the dot
// product, the residual stream, and the weights around them. It keeps nothing
// larger than one layer. It knows nothing of measures, spectra or files.
package forward

import (
	"context"
	"fmt"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// Options says what a run computes. The zero value, like nil, visits every
// layer and computes the logits.
type Options struct {
	Layers     []int                   // visit only these; nil: all
	NoLogits   bool                    // stop after the last layer to visit: Output is empty
	KeepLogits bool                    // keep the logits of every position: T·vocab numbers
	Progress   func(done, total int64) // told of the operations done and to do, from one goroutine at a time, and last of all of them; nil: not

	// Ready is called before a layer is copied for visit, and may wait: a visitor that
	// measures on other goroutines then has one layer in memory at a time, while the
	// pass has gone on to the next one's attention. Its error stops the run. nil: not.
	Ready func() error

	tile int // weights of one product; 0: tileNumbers. Tests make it small
}

// Output is what the model says about the sequence. It is empty for a model
// without an output head.
type Output struct {
	NLL        []float64       // −ln p of tokens 2..T given those before, in nats; length T−1
	LogitsLast []float32       // [vocab] after the last token
	Logits     linalg.Matrix32 // [T, vocab] if Options.KeepLogits
}

// MeanNLL returns the mean of NLL in nats a token, and false for a single token,
// which has none.
func (o *Output) MeanNLL() (float64, bool) {
	if len(o.NLL) == 0 {
		return 0, false
	}
	var sum float64
	for _, v := range o.NLL {
		sum += v
	}
	return sum / float64(len(o.NLL)), true
}

// Run computes the model's forward pass over tokens and calls visit for each
// wanted layer, in order, from the calling goroutine. visit may be nil. The
// layer is fresh at each call and nothing of it is used again: the visitor may
// keep it and measure it on other goroutines while the next layer is computed.
// An error of visit stops the run and is returned.
//
// Errors: *xerr.Usage for tokens or layers that the model does not have;
// *xerr.Format for weights that are not finite; ctx's. After ctx is done the
// run stops within a few products of rows of weights (well below a second).
// Accuracy: products and exponentials in float32; sums of norms, of softmax
// denominators and of NLL in float64. The same bits for any number of cores.
// Memory: one layer's activations in float32 and, if it is visited, in float64;
// logits by tiles. Of weights half a megabyte a core in float32, and one matrix
// where the file holds it transposed. Cost: two operations per weight and
// token, and 4·T²·width for attention.
func Run(ctx context.Context, m *arch.Model, tokens []int, opts *Options, visit func(*head.Layer) error) (*Output, error) {
	if opts == nil {
		opts = &Options{}
	}
	if err := checkTokens(m, tokens); err != nil {
		return nil, err
	}
	wanted, err := wantedLayers(m, opts.Layers)
	if err != nil {
		return nil, err
	}
	p, err := newPass(ctx, m, tokens, opts)
	if err != nil {
		return nil, err
	}
	last := m.Layers // layers to run
	for opts.NoLogits && last > 0 && !wanted[last-1] {
		last--
	}
	p.work.total, p.work.report = p.cost(last), opts.Progress
	for l := range last {
		v := visit
		if !wanted[l] {
			v = nil
		}
		if err := p.block(l, v); err != nil {
			return nil, err
		}
	}
	out := &Output{}
	if p.logitsWanted() {
		if out, err = p.logits(); err != nil {
			return nil, err
		}
	}
	p.work.finish()
	return out, nil
}

// Work returns the operations of a run over T tokens that stops after n layers, or
// goes on to the logits: what Options.Progress counts.
func Work(m *arch.Model, T, n int, logits bool) int64 {
	p := &pass{m: m, opts: &Options{NoLogits: !logits}, x: linalg.Matrix32{Rows: T}}
	return p.cost(n)
}

// checkTokens refuses a sequence that the model cannot take.
func checkTokens(m *arch.Model, tokens []int) error {
	if len(tokens) == 0 {
		return &xerr.Usage{Flag: "tokens", Found: "none", Want: "at least one token"}
	}
	if m.Positions != nil && len(tokens) > m.Positions.Out-m.FirstPosition {
		n := m.Positions.Out - m.FirstPosition
		return &xerr.Usage{Flag: "context", Found: fmt.Sprintf("%d is beyond the %d learned positions", len(tokens), n),
			Want: fmt.Sprintf("at most %d", n), Hint: fmt.Sprintf("use --context %d: learned positions cannot be extended", n)}
	}
	for i, id := range tokens {
		if id < 0 || id >= m.Vocab {
			return &xerr.Usage{Flag: "tokens", Found: fmt.Sprintf("id %d at position %d", id, i), Want: fmt.Sprintf("0-%d", m.Vocab-1),
				Hint: "the tokens come from another vocabulary"}
		}
	}
	return nil
}

// wantedLayers returns for each layer whether it is to be visited.
func wantedLayers(m *arch.Model, layers []int) ([]bool, error) {
	wanted := make([]bool, m.Layers)
	for l := range wanted {
		wanted[l] = layers == nil
	}
	for _, l := range layers {
		if l < 0 || l >= m.Layers {
			return nil, &xerr.Usage{Flag: "layers", Found: fmt.Sprintf("layer %d not found", l), Want: fmt.Sprintf("0-%d", m.Layers-1)}
		}
		wanted[l] = true
	}
	return wanted, nil
}
