package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/internal/atomicfile"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/report"
)

// outputs are the files that a scan writes. All are opened before any work, so
// that a place that cannot be written is found first, and appear only whole.
type outputs struct {
	json, html []*atomicfile.File // by source; empty: not asked for
	csv        *atomicfile.File
	jsonToOut  bool
	csvToOut   bool
	written    [][]string // by source: where its report went
}

// openOutputs opens one file per source and format. With several sources --json
// and --html name folders.
func (c *scanCmd) openOutputs() (*outputs, error) {
	o := &outputs{jsonToOut: c.JSON == "-", csvToOut: c.CSV == "-", written: make([][]string, len(c.Source))}
	if o.jsonToOut && (o.csvToOut || len(c.Source) > 1) {
		return nil, &xerr.Usage{Flag: "--json -", Found: "more than one result for standard output", Want: "one"}
	}
	html, byDefault := c.HTML, false
	if c.HTML == "" && c.JSON == "" && c.CSV == "" {
		html, byDefault = defaultReports()
	}
	err := o.open(&o.html, c.Source, html, ".html", byDefault)
	if err != nil && byDefault { // the cache folder is a convenience: do without
		o.abort()
		o.html, err = nil, nil
	}
	if err == nil && !o.jsonToOut {
		err = o.open(&o.json, c.Source, c.JSON, ".json", false)
	}
	if err == nil && c.CSV != "" && !o.csvToOut {
		o.csv, err = atomicfile.Create(c.CSV)
	}
	if err == nil {
		err = checkClash(append(o.all(), c.Capture), append(slices.Clone(c.Source), c.Text, c.Tokens, c.Rules)...)
	}
	if err != nil {
		o.abort()
		return nil, err
	}
	return o, nil
}

// defaultReports is where the page goes when no output was asked for.
func defaultReports() (dir string, ok bool) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", false
	}
	return filepath.Join(cache, "eigenhead", "reports"), true
}

func (o *outputs) open(files *[]*atomicfile.File, sources []string, target, ext string, folder bool) error {
	if target == "" {
		return nil
	}
	folder = folder || len(sources) > 1
	if folder && filepath.Ext(target) == ext {
		return &xerr.Usage{Flag: target, Found: fmt.Sprintf("one file for %d models", len(sources)), Want: "the name of a folder: each model gets a report of its own"}
	}
	if folder {
		if err := os.MkdirAll(target, 0o755); err != nil {
			return &xerr.Usage{Flag: target, Found: "cannot be made", Want: "a folder: several models give one report each"}
		}
	}
	taken := map[string]bool{}
	for i, source := range sources {
		path := target
		if folder {
			path = filepath.Join(target, uniqueName(source, taken)+ext)
		}
		f, err := atomicfile.Create(path)
		if err != nil {
			return err
		}
		*files = append(*files, f)
		o.written[i] = append(o.written[i], path)
	}
	return nil
}

// uniqueName is the source's base name without the format's ending.
func uniqueName(source string, taken map[string]bool) string {
	base := filepath.Base(filepath.Clean(source))
	if full, err := filepath.Abs(source); err == nil {
		if base = filepath.Base(full); strings.HasPrefix(base, "model.") { // says nothing: the folder does
			base = filepath.Base(filepath.Dir(full))
		}
	}
	for _, ext := range []string{".safetensors", ".gguf"} {
		base = strings.TrimSuffix(base, ext)
	}
	name := base
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	taken[name] = true
	return name
}

// add writes the report of source i into its files, not yet visible.
func (o *outputs) add(i int, r *report.Report) error {
	if len(o.json) > 0 {
		if err := report.WriteJSON(o.json[i], r); err != nil {
			return err
		}
	}
	if len(o.html) > 0 {
		return report.WriteHTML(o.html[i], r)
	}
	return nil
}

// finish writes what needs all reports and makes every file visible.
func (o *outputs) finish(stdout io.Writer, reports []*report.Report) error {
	if o.csv != nil {
		if err := report.WriteCSV(o.csv, reports...); err != nil {
			return err
		}
	}
	for _, f := range append(append(o.json, o.html...), o.csv) {
		if f == nil {
			continue
		}
		if err := f.Commit(); err != nil {
			return err
		}
	}
	switch {
	case o.jsonToOut:
		return report.WriteJSON(stdout, reports[0])
	case o.csvToOut:
		return report.WriteCSV(stdout, reports...)
	}
	return nil
}

func (o *outputs) abort() {
	for _, f := range append(append(o.json, o.html...), o.csv) {
		f.Abort()
	}
}

func (o *outputs) usesStdout() bool { return o.jsonToOut || o.csvToOut }

// all lists every file of the scan.
func (o *outputs) all() []string {
	paths := slices.Concat(o.written...)
	if o.csv != nil {
		paths = append(paths, o.csv.Path())
	}
	return paths
}

// where lists the files that hold the full report of source i.
func (o *outputs) where(i int) []string {
	all := o.written[i]
	if o.csv != nil {
		all = append(all, o.csv.Path())
	}
	return all
}
