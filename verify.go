package eigenhead

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"

	"github.com/eigenhead/eigenhead/capture"
	"github.com/eigenhead/eigenhead/forward"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// Difference is the largest absolute difference of one kind of number in one
// layer, and where it stands.
type Difference struct {
	Layer  int     // −1 for logits
	Tensor string  // "q", "k", "v", "x", "sink" or "logits"; where they differ also "scale", "mask", "softcap", "alibi"
	Max    float64 // largest |ours − reference|; +Inf where one of the two is not finite, and for other masks; of scale, softcap and alibi relative to the reference
	Scale  float64 // largest |reference|, to judge Max by
	Where  string  // such as "head 3, token 17, column 5"
	Ours   float64
	Theirs float64
}

// Exceeds reports whether the difference is above a tolerance, which is absolute,
// for logits and what enters attention are normed to a few tens at most; for the
// residual stream, which is not (a healthy model's may hold 24,000), it is relative
// to its largest number where that is above 1.
func (d Difference) Exceeds(tolerance float64) bool {
	if d.Tensor == "x" {
		tolerance *= math.Max(1, d.Scale)
	}
	return !(d.Max <= tolerance)
}

// logitsReference is the JSON form of a reference: ids and what follows them.
type logitsReference struct {
	IDs        []int     `json:"ids"`
	LogitsLast []float64 `json:"logits_last"`
}

// Verify runs a model on the tokens of a reference and compares, layer by layer.
//
// reference is a capture, whose q, k, v, residual stream, sinks and logits after
// the last token are compared as far as it has them, and how scores come of q and
// k; or a JSON file {"ids": […], "logits_last": […]}, whose logits are.
// Errors are those of Scan; differences are not errors: Exceeds compares them with a tolerance.
func Verify(ctx context.Context, model, reference string, progress func(done, total int64)) ([]Difference, error) {
	src, err := openModel(model)
	if err != nil {
		return nil, err
	}
	defer src.close()
	isCapture, err := capture.IsCapture(reference)
	if err != nil {
		return nil, err
	}
	if isCapture {
		return src.verifyCapture(ctx, reference, progress)
	}
	return src.verifyLogits(ctx, reference, progress)
}

func (s *source) verifyLogits(ctx context.Context, file string, step func(done, total int64)) ([]Difference, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, cannotRead("reference", file, err)
	}
	var ref logitsReference
	if err := json.Unmarshal(data, &ref); err != nil || len(ref.IDs) == 0 || len(ref.LogitsLast) == 0 {
		return nil, &xerr.Format{File: file, Found: "neither a capture nor a JSON object with ids and logits_last",
			Want: `a capture file, or {"ids": […], "logits_last": […]}`, Hint: "docs/formats/capture.md says how to make a capture"}
	}
	if err := s.checkIDs(file, ref.IDs); err != nil {
		return nil, err
	}
	if err := s.checkLogits(file, len(ref.LogitsLast)); err != nil {
		return nil, err
	}
	out, err := forward.Run(ctx, s.model, ref.IDs, &forward.Options{Layers: []int{}, Progress: step}, nil)
	if err != nil {
		return nil, err
	}
	return []Difference{compareLogits(out.LogitsLast, ref.LogitsLast)}, nil
}

// checkLogits refuses a reference's logits, n of them, that the model has no
// counterpart of.
func (s *source) checkLogits(file string, n int) error {
	if s.model.Head == nil {
		return &xerr.Unsupported{File: s.name, What: "logits", Found: "a model without an output head", Want: "a capture without logits as the reference",
			Hint: "docs/formats/capture.md says how to make a capture"}
	}
	if n != s.model.Vocab {
		return &xerr.Format{File: file, What: "logits_last", Found: fmt.Sprintf("%d numbers", n),
			Want: fmt.Sprintf("%d, the vocabulary of %s", s.model.Vocab, s.name)}
	}
	return nil
}

func compareLogits(ours []float32, theirs []float64) Difference {
	d := Difference{Layer: -1, Tensor: "logits", Max: -1}
	for id, v := range theirs {
		d.take(float64(ours[id]), v, func() string { return fmt.Sprintf("token id %d", id) })
	}
	return d
}

func (s *source) verifyCapture(ctx context.Context, file string, step func(done, total int64)) ([]Difference, error) {
	ref, err := capture.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = ref.Close() }()
	tokens := ref.Meta.Tokens
	if tokens == nil {
		return nil, &xerr.Format{File: file, What: `metadata key "tokens"`, Found: "missing", Want: "the token ids that the capture was made of"}
	}
	if err := s.checkIDs(file, tokens); err != nil {
		return nil, err
	}
	logits, err := ref.LogitsLast()
	if err != nil {
		return nil, err
	}
	if logits != nil {
		if err := s.checkLogits(file, len(logits)); err != nil {
			return nil, err
		}
	}
	var all []Difference
	out, err := s.layers(ctx, walk{tokens: tokens, layers: ref.Layers(), logits: logits != nil, progress: step}, func(ours *head.Layer) error {
		theirs, err := ref.Layer(ours.Index)
		if err != nil {
			return err
		}
		differences, err := compareLayers(file, ours, theirs)
		all = append(all, differences...)
		return err
	})
	if err != nil {
		return nil, err
	}
	if logits != nil {
		all = append(all, compareLogits(out.LogitsLast, logits))
	}
	return all, nil
}

// compareLayers compares the heads that the reference has; it may be subsampled.
func compareLayers(file string, ours, theirs *head.Layer) ([]Difference, error) {
	byHead := map[int]head.Pair{}
	for _, p := range ours.Pairs {
		byHead[p.ID.Head] = p
	}
	q := Difference{Layer: ours.Index, Tensor: "q", Max: -1}
	k, v, x, sink := q, q, q, q
	k.Tensor, v.Tensor, x.Tensor, sink.Tensor = "k", "v", "x", "sink"
	var scores scoring
	for _, b := range theirs.Pairs {
		a, ok := byHead[b.ID.Head]
		if !ok {
			return nil, &xerr.Format{File: file, Found: b.ID.String(), Want: fmt.Sprintf("a head of the model, which has %d", len(ours.Pairs))}
		}
		if a.Q.Rows != b.Q.Rows || a.Q.Cols != b.Q.Cols {
			return nil, &xerr.Format{File: file, What: b.ID.String() + " q", Found: fmt.Sprintf("[%d %d]", b.Q.Rows, b.Q.Cols),
				Want: fmt.Sprintf("[%d %d]", a.Q.Rows, a.Q.Cols)}
		}
		name := fmt.Sprintf("head %d", b.ID.Head)
		q.matrices(name, a.Q, b.Q)
		k.matrices(name, a.K, b.K)
		v.matrices(name, a.V, b.V)
		sink.sinks(name, a.Sink, b.Sink)
		scores.compare(name, a, b)
	}
	x.matrices("", ours.X.Float64(), theirs.X.Float64())
	var found []Difference
	for _, d := range []Difference{q, k, v, x, sink} {
		if d.Max >= 0 { // the reference has this tensor
			found = append(found, d)
		}
	}
	return append(found, scores.found...), nil
}

// matrices takes every entry of the reference's matrix, if it has one.
func (d *Difference) matrices(name string, ours, theirs linalg.Matrix) {
	if theirs.Rows != ours.Rows || theirs.Cols != ours.Cols {
		return // v and x are optional in a capture
	}
	for i := range theirs.Rows {
		a, b := ours.Row(i), theirs.Row(i)
		for j := range b {
			d.take(a[j], b[j], func() string {
				where := fmt.Sprintf("token %d, column %d", i, j)
				if name != "" {
					where = name + ", " + where
				}
				return where
			})
		}
	}
}

func (d *Difference) take(ours, theirs float64, where func() string) {
	diff := math.Abs(ours - theirs)
	if math.IsNaN(diff) || math.IsInf(diff, 0) {
		diff = math.Inf(1)
	}
	d.Scale = math.Max(d.Scale, math.Abs(theirs))
	if diff > d.Max {
		d.Max, d.Where, d.Ours, d.Theirs = diff, where(), ours, theirs
	}
}
