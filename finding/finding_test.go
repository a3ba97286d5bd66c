package finding

import (
	"errors"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

func TestRulesAreDocumented(t *testing.T) {
	code := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := map[string]bool{}
	for _, r := range All {
		if !code.MatchString(r.Code) || seen[r.Code] {
			t.Errorf("code %q is malformed or taken", r.Code)
		}
		seen[r.Code] = true
		if r.Doc.Summary == "" || r.Doc.Means == "" || r.Doc.Do == "" || r.Check == nil || r.Severity.Rank() < 0 {
			t.Errorf("%s: a field of the rule is empty", r.Code)
		}
		if _, err := os.Stat(strings.ReplaceAll(r.Code, "-", "_") + ".go"); err != nil {
			t.Errorf("%s: not in a file of its own: %v", r.Code, err)
		}
		if _, err := os.Stat("testdata/" + r.Code + ".txt"); err != nil {
			t.Errorf("%s: has no rule test: %v", r.Code, err)
		}
		for _, d := range r.DependsOn {
			if Lookup(d.Code) != d {
				t.Errorf("%s depends on %s, which is not in All", r.Code, d.Code)
			}
		}
	}
}

// TestEveryRuleFileIsListed finds a rule that was written and not listed.
func TestEveryRuleFileIsListed(t *testing.T) {
	declared := regexp.MustCompile(`(?m)^var \w+ = &Rule\{`)
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".go") && !strings.HasSuffix(f.Name(), "_test.go") {
			data, err := os.ReadFile(f.Name())
			if err != nil {
				t.Fatal(err)
			}
			n += len(declared.FindAll(data, -1))
		}
	}
	if n != len(All) {
		t.Errorf("%d rules are declared, All lists %d", n, len(All))
	}
}

// TestThresholdsAreExplained wants a comment directly above each key.
func TestThresholdsAreExplained(t *testing.T) {
	lines := strings.Split(Source(), "\n")
	for _, k := range keys() {
		cut := strings.LastIndex(k.name, ".")
		table, name := k.name[:cut], k.name[cut+1:]
		if k.of(Default()) <= 0 {
			t.Errorf("%s: missing from thresholds.toml", k.name)
		}
		inTable, ok := false, false
		for i, line := range lines {
			if strings.HasPrefix(line, "[") {
				inTable = line == "["+table+"]"
			}
			if inTable && strings.HasPrefix(line, name+" = ") {
				ok = strings.HasPrefix(lines[i-1], "# ")
			}
		}
		if !ok {
			t.Errorf("%s: no reason stands above it", k.name)
		}
		// Package alert's tests want a rule for each table of the monitor.
		if !strings.HasPrefix(table, "monitor") && Lookup(table) == nil {
			t.Errorf("%s: no rule has this code", k.name)
		}
	}
}

func TestLoad(t *testing.T) {
	got, err := Load("mine.toml", []byte("[max-logit]\nwarn = 50\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got.MaxLogit.Warn != 50 || got.MaxLogit.Critical != 1000 || got.SinkHead.Mass != 0.3 {
		t.Errorf("overriding one value gave %+v", got)
	}
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "[max-logit]\nwarm = 50\n", `key "max-logit.warm": unknown, want the name of a threshold, nearest "max-logit.warn"`},
		{"unknown table", "[max_logit]\nwarn = 50\n", `nearest "max-logit.warn"`},
		{"wrong type", "[max-logit]\nwarn = \"high\"\n", `mine.toml: line 2, column 8: key "max-logit.warn": a TOML string, want a number`},
		{"list", "[max-logit]\nwarn = [1]\n", "a TOML array, want a number"},
		{"broken", "[max-logit\n", "mine.toml: line 1"},
		{"not finite", "[max-logit]\nwarn = inf\n", `key "max-logit.warn": +Inf, want a finite number`},
		{"nan", "[sink-head]\nmass = nan\n", `key "sink-head.mass": NaN`},
		{"negative", "[sink-head]\nmass = -1.0\n", `key "sink-head.mass": -1`},
	} {
		_, err := Load("mine.toml", []byte(c.text))
		var format *xerr.Format
		if !errors.As(err, &format) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(Source()))
	f.Add([]byte("[max-logit]\nwarm = 50\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Load("f.toml", data)
		var format *xerr.Format
		if err != nil && !errors.As(err, &format) {
			t.Fatalf("error of another type: %v", err)
		}
		if err == nil {
			for _, k := range keys() {
				if v := k.of(got); !(v >= 0) || math.IsInf(v, 0) {
					t.Fatalf("%s = %g was accepted", k.name, v)
				}
			}
		}
	})
}

func TestNum(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.71234: "0.712", 0.0121: "0.0121", 12345: "12300", 1: "1", 1e7: "1e+07", -1234: "−1230", 2.5e-5: "2.5e−05"} {
		if got := num(x); got != want {
			t.Errorf("num(%g) = %q, want %q", x, got, want)
		}
	}
}
