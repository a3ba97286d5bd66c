// Package eigenhead shows what the attention heads of a language model really
// do. Scan opens a checkpoint or a capture, runs a text through it, measures the
// exact spectrum and the health of every head beside its null, and returns one
// report. The packages below do the parts; this one only joins them.
package eigenhead

import (
	"context"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/report"
)

// Version is the program's version, part of every report.
const Version = "0.1.0"

// Demo is the source name of the embedded checkpoint.
const Demo = "demo"

// DefaultContext is the window length taken where none is asked for.
const DefaultContext = 512

// DefaultMemory bounds the attention tiles that a scan keeps between products.
const DefaultMemory = 256 << 20

// Options of a scan. The zero value, or nil, means the defaults.
type Options struct {
	Text       string                             // file to read; "": the embedded text
	Tokens     string                             // JSON file with a list of ids, in place of a text
	Context    int                                // window length in tokens; 0: min(512, trained length, tokens there are)
	Windows    int                                // consecutive windows of the text to average over; 0: 1
	Layers     string                             // such as "0-3,7"; "": all
	Measures   []string                           // names or patterns such as "energy.*"; nil: all
	Energy     attention.Convention               // "": full
	Certify    bool                               // a tight upper bound of attention.sigma2, with its failure probability
	Memory     int64                              // bytes for kept attention tiles; 0: DefaultMemory
	Seed       uint64                             // of everything drawn at random; 0 is a seed too
	HashWhole  bool                               // hash whole files, not headers and configuration only
	Capture    string                             // also write the layers to this capture file; "": no
	Thresholds *finding.Thresholds                // nil: finding.Default
	Profiles   bool                               // keep what the pictures of single heads need
	CacheDir   string                             // for null baselines outside the table; "": the user's cache folder
	Progress   func(done, total int64)            // told of the work done and to do; nil: not
	Simulating func(what string, done, total int) // told of nulls that are not in the table; nil: not
}

// Scan measures every head of a checkpoint or capture on one window of tokens.
//
// source is a model file or folder, a capture file, the name of a model in a store
// of this machine (Hugging Face's cache, Ollama's, LM Studio's), or Demo. Errors: of type
// *xerr.Usage, *xerr.Format or *xerr.Unsupported where options or input are at
// fault; ctx's error, and then no file has been written, where it was interrupted.
// The report is a function of source, text and options alone: any number of cores
// gives the same bytes. Cost: one forward pass, O(T·d²) a head for spectra and
// O(T²·d) a head for the statistics of softmax; memory is linear in T.
func Scan(ctx context.Context, source string, opts *Options) (*report.Report, error) {
	if opts == nil {
		opts = &Options{}
	}
	src, err := open(source)
	if err != nil {
		return nil, err
	}
	defer src.close()
	s, err := newScan(src, opts)
	if err != nil {
		return nil, err
	}
	return s.run(ctx)
}
