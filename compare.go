package eigenhead

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/eigenhead/eigenhead/report"
)

// Compare compares two models, captures or JSON reports of one architecture, head
// by head. Models are scanned with the same options, so on the same text; a file
// that ends in .json is a report of an earlier scan. Errors as for Scan, and
// *xerr.Usage where the two do not have the same heads.
func Compare(ctx context.Context, a, b string, opts *Options) (*report.Comparison, error) {
	var reports [2]*report.Report
	for i, source := range []string{a, b} {
		var err error
		if reports[i], err = reportOf(ctx, source, half(opts, int64(i))); err != nil {
			return nil, err
		}
	}
	return report.Compare(reports[0], reports[1])
}

// half makes the progress of one of two scans that of both, each for half of it.
func half(opts *Options, which int64) *Options {
	if opts == nil || opts.Progress == nil {
		return opts
	}
	const whole = 1 << 20
	o := *opts
	o.Progress = func(done, total int64) { opts.Progress(which*whole+share(whole, done, total), 2*whole) }
	return &o
}

func reportOf(ctx context.Context, source string, opts *Options) (*report.Report, error) {
	if !strings.EqualFold(filepath.Ext(source), ".json") {
		return Scan(ctx, source, opts)
	}
	data, err := os.ReadFile(source)
	if err != nil {
		return nil, cannotRead("report", source, err)
	}
	return report.ReadJSON(source, bytes.TrimSpace(data))
}
