package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/eigenhead/eigenhead/internal/monitor/alert"
)

// TestMonitorDocsNameWhatThereIs holds docs/monitor.md to the program: each command
// and flag that it shows exists, and no alert is left out.
func TestMonitorDocsNameWhatThereIs(t *testing.T) {
	data, err := os.ReadFile("../../docs/monitor.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	parser, err := kong.New(new(commands), kong.Name("eigenhead"))
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]bool{"--help": true}
	for _, sub := range parser.Model.Children {
		for _, leaf := range append(sub.Children, sub) {
			for _, f := range leaf.Flags {
				flags["--"+f.Name] = true
			}
		}
	}
	example, err := os.ReadFile("../../examples/train_tiny.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range regexp.MustCompile(`--[a-z][a-z-]*[a-z]`).FindAllString(text, -1) {
		if !flags[flag] && flag != "--retain" && flag != "--from" && flag != "--data-binary" && !strings.Contains(string(example), `"`+flag+`"`) {
			t.Errorf("docs/monitor.md shows %s, which no command has", flag)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^eigenhead (.+?)(?: *#.*| \|.*)?$`).FindAllStringSubmatch(text, -1) {
		if _, err := parser.Parse(strings.Fields(m[1])); err != nil && !strings.Contains(err.Error(), "no such file") {
			t.Errorf("docs/monitor.md: eigenhead %s: %v", m[1], err)
		}
	}
	for _, r := range alert.All {
		if !strings.Contains(text, "`"+r.Code+"`") {
			t.Errorf("docs/monitor.md does not tell of the alert %s", r.Code)
		}
	}
}
