// Package report holds the result of a scan, eigenhead.report/1, and writes it
// as terminal text, JSON, CSV and a self-contained HTML page. It knows nothing
// of checkpoints or forward passes, and nothing about the run (time, path of the
// working folder, host) is in a report, so that the same input gives the same bytes.
package report

import (
	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/measure"
)

// Schema is the format's name; a field never changes its meaning within it.
const Schema = "eigenhead.report/1"

// Report is one scan.
type Report struct {
	Schema      string                `json:"schema"`
	Tool        Tool                  `json:"tool"`
	Seed        uint64                `json:"seed"`
	Source      Source                `json:"source"`
	Model       Model                 `json:"model"`
	Input       Input                 `json:"input"`
	Conventions Conventions           `json:"conventions"`
	Heads       []measure.HeadResult  `json:"heads"`
	KVHeads     []measure.KVResult    `json:"kv_heads"`
	Layers      []measure.LayerResult `json:"layers"`
	Findings    []finding.Finding     `json:"findings"`
	Omitted     []measure.Omission    `json:"omitted"`
	Warnings    []string              `json:"warnings"`
}

// Tool is the program that made the report.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Kernel  string `json:"kernel"` // arithmetic kernels used: numbers agree across kernels to the stated bounds, not bit for bit
}

// Source is the file that was read.
type Source struct {
	Path     string `json:"path"`   // base name only, or "demo"
	Format   string `json:"format"` // "safetensors", "gguf" or "capture"
	DType    string `json:"dtype"`  // such as "Q4_1 (210), F32 (61), Q8_0 (1)"
	SHA256   string `json:"sha256"`
	SHA256Of string `json:"sha256_of"` // "headers" or "files"
}

// Model is the architecture. Zero numbers are left out: a capture may not know them.
type Model struct {
	Name       string   `json:"name,omitempty"`
	Family     string   `json:"family"`
	Layers     int      `json:"layers"`
	Heads      int      `json:"heads"`
	KVHeads    int      `json:"kv_heads"`
	HeadDim    int      `json:"head_dim"`
	Width      int      `json:"d_model,omitempty"`
	Vocab      int      `json:"vocab,omitempty"`
	Parameters int64    `json:"parameters,omitempty"`
	Context    int      `json:"context,omitempty"`  // trained length
	Position   string   `json:"position,omitempty"` // "rope", "learned"
	RopeBase   float64  `json:"rope_base,omitempty"`
	Norm       string   `json:"norm,omitempty"`
	QKNorm     bool     `json:"qk_norm"`
	Defaults   []string `json:"defaults,omitempty"` // keys the file leaves out, with the value taken and its source
}

// Input is the text that ran through the model.
type Input struct {
	Text       string   `json:"text"` // base name of the file, "embedded" or "tokens"
	TextSHA256 string   `json:"text_sha256,omitempty"`
	Tokens     int      `json:"tokens"`            // tokens used, BOS included
	Available  int      `json:"available"`         // tokens that the text has
	Context    int      `json:"context"`           // window length
	Windows    int      `json:"windows,omitempty"` // windows averaged over; absent: one
	BOS        *int     `json:"bos"`               // id put in front; null: none
	EOS        *int     `json:"eos,omitempty"`     // id put behind each window; absent: none
	BOSSource  string   `json:"bos_source"`        // which setting of the file said so
	NLL        *float64 `json:"nll"`               // mean nats per token, tokens 2..T; null: not known (capture)
	Perplexity *float64 `json:"perplexity"`
	Protocol   string   `json:"protocol"` // how NLL was taken, in words
}

// Conventions says how to read the numbers.
type Conventions struct {
	Energy    string `json:"energy"` // "full", "causal-mean" or "masked"
	Scale     string `json:"scale"`
	Mask      string `json:"mask"`
	MaxLogit  string `json:"max_logit"`
	Precision string `json:"precision"`
	Null      string `json:"null"`
}
