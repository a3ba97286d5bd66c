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
	ra, err := reportOf(ctx, a, opts)
	if err != nil {
		return nil, err
	}
	rb, err := reportOf(ctx, b, opts)
	if err != nil {
		return nil, err
	}
	return report.Compare(ra, rb)
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
