package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor/alert"
	"github.com/eigenhead/eigenhead/internal/spelling"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/measure"
)

// explainCmd prints the documentation of one measure, finding or alert.
type explainCmd struct {
	Name string `arg:"" optional:"" help:"Measure, such as key.incoherence, finding, such as sink-head, or alert, such as logit-growth. Default: list them all."`
}

// Help is the long help, with examples that work as they stand.
func (explainCmd) Help() string {
	return `Examples:
  eigenhead explain
  eigenhead explain key.incoherence
  eigenhead explain sink-head
  eigenhead explain logit-growth`
}

// Run prints the entry, or one line for each where no name is given.
func (c *explainCmd) Run(e *env) error {
	if c.Name == "" {
		return listAll(e.stdout)
	}
	rule, over := finding.Lookup(c.Name), alert.Lookup(c.Name)
	if rule != nil {
		if err := explainRule(e, c.Name+" - finding, "+string(rule.Severity), rule.Doc); err != nil {
			return err
		}
	}
	if over != nil { // several codes are both: a scan finds it, the monitor sees it come
		return explainRule(e, c.Name+" - alert over time, "+string(over.Severity), over.Doc)
	}
	if rule != nil {
		return nil
	}
	m, err := measure.Lookup(c.Name)
	if err != nil {
		return &xerr.Usage{Flag: fmt.Sprintf("%q", c.Name), Found: "neither a measure nor a finding nor an alert",
			Want: fmt.Sprintf("a name such as %q", nearestEntry(err, c.Name)), Hint: "eigenhead explain lists them all"}
	}
	return explainMeasure(e, m)
}

// nearestEntry returns the measure, finding or alert whose name is closest; a measure
// may be named without its group.
func nearestEntry(err error, name string) string {
	var codes []string
	for _, r := range finding.All {
		codes = append(codes, r.Code)
	}
	for _, r := range alert.All {
		codes = append(codes, r.Code)
	}
	code := spelling.Of(name, codes)
	var unknown *measure.UnknownError
	if !errors.As(err, &unknown) {
		return code
	}
	_, short, _ := strings.Cut(unknown.Nearest, ".")
	if spelling.Edits(name, code) < min(spelling.Edits(name, unknown.Nearest), 1+spelling.Edits(name, short)) {
		return code
	}
	return unknown.Nearest
}

func listAll(w io.Writer) error {
	fmt.Fprintln(w, "measures")
	for _, m := range measure.All {
		fmt.Fprintf(w, "  %-26s %s\n", m.Name, m.Doc.Summary)
	}
	fmt.Fprintln(w, "\nfindings")
	for _, r := range finding.All {
		fmt.Fprintf(w, "  %-26s %s\n", r.Code, r.Doc.Summary)
	}
	fmt.Fprintln(w, "\nalerts over time")
	for _, r := range alert.All {
		fmt.Fprintf(w, "  %-26s %s\n", r.Code, r.Doc.Summary)
	}
	return nil
}

func explainMeasure(e *env, m *measure.Measure) error {
	per := map[measure.Per]string{measure.PerHead: "query head", measure.PerKVHead: "KV head", measure.PerLayer: "layer"}[m.Per]
	null := m.Doc.Null
	if m.NoNull != "" {
		null = strings.TrimSpace(null + " None: " + m.NoNull)
	}
	return entry(e, m.Name+" - one number per "+per, [][2]string{
		{"what", m.Doc.Summary}, {"formula", m.Doc.Formula}, {"unit", m.Unit}, {"range", m.Doc.Range},
		{"null", null}, {"meaning", m.Doc.Meaning}, {"source", m.Source},
	})
}

func explainRule(e *env, title string, d finding.Doc) error {
	return entry(e, title, [][2]string{
		{"what", d.Summary}, {"means", d.Means}, {"do", d.Do}, {"thresholds", "eigenhead rules prints them with their sources"},
	})
}

// entry prints a title and labelled paragraphs, wrapped to the terminal.
func entry(e *env, title string, rows [][2]string) error {
	fmt.Fprintln(e.stdout, title)
	for _, row := range rows {
		if row[1] == "" {
			continue
		}
		label := fmt.Sprintf("  %-11s", row[0])
		for _, line := range wrap(row[1], min(e.term.width, 100)-len(label)) {
			fmt.Fprintln(e.stdout, label+line)
			label = strings.Repeat(" ", len(label))
		}
	}
	return nil
}

// wrap breaks text at spaces into lines of at most width characters, and keeps
// the line breaks that it has.
func wrap(text string, width int) (lines []string) {
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := ""
		for _, word := range strings.Fields(paragraph) {
			if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
				lines, line = append(lines, line), ""
			}
			line = strings.TrimSpace(line + " " + word)
		}
		lines = append(lines, line)
	}
	return lines
}
