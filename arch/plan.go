package arch

import "github.com/eigenhead/eigenhead/head"

// plan is what a family's configuration decides about blocks, for the tensors to
// follow.
type plan struct {
	qkvBias, outBias, mlpBias, headBias, routerBias biasRule

	parallel               bool
	normAfter, noFinalNorm bool                // OPT
	twoNorms               bool                // Falcon: attention and MLP side by side have a norm each
	plusOne                bool                // norms multiply by 1 + gain
	masks                  []head.Mask         // by layer; nil: causal everywhere
	ropes                  []*Rope             // by layer; nil: Model.Rope everywhere
	scale                  func(l int) float64 // by layer; nil: Model.Scale
	softcap                float64             // on scores
	slopes                 []float64           // ALiBi, by head
	embedding              int                 // width of embeddings before EmbeddingIn; 0: Width
	qkvOrder               rowOrder            // of a fused q, k, v projection; nil: stacked
	qOrder                 rowOrder            // of query rows; nil: as they are
	kOrder                 rowOrder            // of key rows
	experts                int                 // number of experts; 0: one MLP
	active                 int                 // experts that a token takes
	normalize              bool                // Experts.Normalize
	dense                  func(l int) bool    // layers without experts; nil: none
	types                  int                 // token types that there are embeddings of
	original               int                 // context before the extension by LongRoPE, if there is one (GGUF)
	longAttention          float64             // factor of that extension on q and k
	denseFFN               int                 // hidden width of the MLP of those layers
}

// biasRule says whether linear maps have a bias, and which key says so.
type biasRule struct {
	has bool
	key string // "" where the family says so
}
