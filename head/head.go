// Package head holds the words that every other package shares about attention
// heads: which head (ID), what it multiplies (Pair), what one layer of them
// handed over (Layer) and which keys a query sees (Mask). It computes nothing:
// spectra are in spectrum, softmax in attention, numbers about heads in measure.
package head

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/eigenhead/eigenhead/linalg"
)

// ID names one query head. Both numbers count from 0.
type ID struct {
	Layer int `json:"layer"`
	Head  int `json:"head"`
}

// String returns the field's short form, such as "L3H5".
func (id ID) String() string { return fmt.Sprintf("L%dH%d", id.Layer, id.Head) }

var idForm = regexp.MustCompile(`^[Ll](\d{1,6})[Hh](\d{1,6})$`)

// ParseID reads the form that String writes; letters may be of either case.
func ParseID(s string) (ID, error) {
	m := idForm.FindStringSubmatch(s)
	if m == nil {
		return ID{}, fmt.Errorf("head %q: not of the form L3H5", s)
	}
	layer, _ := strconv.Atoi(m[1]) // at most six digits: cannot overflow
	h, _ := strconv.Atoi(m[2])
	return ID{Layer: layer, Head: h}, nil
}

// Pair is one query head with the keys that it reads: scores are
//
//	S = Scale · Q Kᵀ            [T, T]
//	Z = Softcap · tanh(S / Softcap) if Softcap > 0, else S; less ALiBi·(i−j)
//	A = softmax over the visible keys of Z, with Sink as one more logit if set
//
// Shapes: Q [T, d], K [T, d], V [T, d_v] or empty where it is not known. Q and K
// are exactly as they enter the dot product: after RoPE and QK-norm. Heads that
// share a KV head share the same K and V data: never write to them.
type Pair struct {
	ID      ID
	KVHead  int
	Q, K, V linalg.Matrix
	Scale   float64
	Mask    Mask
	Softcap float64  // 0: none
	Sink    *float64 // learned sink logit; nil: none
	ALiBi   float64  // slope of a bias −ALiBi·(i−j) on visible scores, no part of Q and K; 0: none
}

// T returns the number of tokens.
func (p Pair) T() int { return p.Q.Rows }

// Dim returns the head dimension d.
func (p Pair) Dim() int { return p.Q.Cols }

// Layer is what one attention layer hands over for one sequence. Fields that the
// source cannot know are empty (a capture holds no W_O): measures that need them
// are then omitted, with that reason.
type Layer struct {
	Index   int
	Pairs   []Pair // by query head, in order
	KVHeads int    // number of KV heads in the model's layer
	KVIDs   []int  // true number of each distinct KV head present, ascending
	QKNorm  bool   // q and k pass a norm before the dot product
	Sparse  bool   // tokens were subsampled: only energy and key measures apply

	X  linalg.Matrix32 // [T, d_model] residual stream entering the layer
	AV linalg.Matrix32 // [T, n_heads·d_v] Σ_j A[i,j] v_j of every head, side by side
	WO Weights         // [d_model, n_heads·d_v] the output projection, so that write = AV·WOᵀ
	WQ Weights         // [n_heads·d, d_model] query weights as they multiply the normed input
	WK Weights         // [n_kv·d, d_model] key weights

	WriteNorm []float64 // ‖write_h‖_F by head when a capture gives it; else nil
	Tokens    []int     // token ids; nil if unknown
}
