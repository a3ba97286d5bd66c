package eigenhead_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/eigenhead/eigenhead"

// importRules is the architecture, in the notation of Go's own
// go/build/deps_test.go: "a < b" means that b may import a, and so on along the
// chain. "NONE < a" means that a imports nothing of ours but the leaves below.
// ROOT is the package eigenhead itself. Relaxing a rule is a commit of its own.
const importRules = `
	# leaves: no idea of heads, and open to everyone
	NONE < internal/par, internal/xerr, internal/mmap, internal/spelling;
	internal/xerr < internal/atomicfile;

	NONE < internal/kernel;
	internal/kernel < linalg < spectrum, randmat, head, checkpoint;
	internal/mmap, internal/kernel < internal/safetensors < checkpoint, capture; # kernels widen 16-bit numbers
	NONE < plot < internal/page;

	head, spectrum < attention;
	head < capture;
	checkpoint < tokenizer;
	checkpoint, head < arch < forward;
	checkpoint < arch/archtest; # random checkpoints, for tests
	attention, randmat < measure < finding < report;
	internal/page < report;

	head, attention, randmat, internal/page < lab/collapse, lab/specialize;

	capture, finding < internal/monitor;
	internal/monitor < internal/monitor/analyze, internal/monitor/alert, internal/monitor/deliver, internal/monitor/store;
	internal/monitor/store < internal/monitor/export;
	internal/monitor/analyze, internal/monitor/alert, internal/monitor/deliver, internal/monitor/store < internal/monitor/pipeline;
	internal/monitor/pipeline < internal/monitor/telemetry, internal/monitor/ingest;
	internal/monitor < internal/monitor/monitortest < bench/monitor; # captures, for tests and bench
	internal/monitor/pipeline, internal/page < internal/monitor/dashboard;
	NONE < internal/monitor/auth < internal/monitor/ingest, internal/monitor/dashboard;

	NONE < internal/demo, internal/locate;
	report, capture, tokenizer, forward, internal/demo, internal/locate < ROOT;
	internal/atomicfile < internal/browsertest;
	internal/monitor/ingest, internal/monitor/dashboard, internal/monitor/telemetry, internal/monitor/export < cmd/eigenhead;
	ROOT, lab/collapse, lab/specialize < cmd/eigenhead, bench/ours, bench/heads, bench/tokenizer;
	measure < tools/nulltable;
	internal/monitor/analyze, internal/monitor/alert < tools/recordedruns/table;
`

// leaves may be imported by every package.
var leaves = []string{"internal/par", "internal/xerr", "internal/mmap", "internal/atomicfile", "internal/spelling"}

// refused are imports that no rule may ever allow, each with its reason.
var refused = []struct{ from, to, why string }{
	{"spectrum", "head", "spectra know nothing of heads"},
	{"linalg", "head", "linear algebra knows nothing of heads"},
	{"randmat", "head", "laws know nothing of heads"},
	{"checkpoint", "arch", "files know nothing of families"},
	{"forward", "measure", "the forward pass hands over, it does not judge"},
	{"forward", "spectrum", "the forward pass hands over, it does not judge"},
	{"measure", "arch", "numbers come from pairs, whatever made them"},
	{"measure", "forward", "numbers come from pairs, whatever made them"},
	{"measure", "checkpoint", "numbers come from pairs, whatever made them"},
	{"finding", "arch", "rules look at numbers only"},
	{"finding", "forward", "rules look at numbers only"},
	{"finding", "checkpoint", "rules look at numbers only"},
	{"lab/collapse", "checkpoint", "an oracle shares no code with what it tests"},
	{"lab/collapse", "arch", "an oracle shares no code with what it tests"},
	{"lab/collapse", "forward", "an oracle shares no code with what it tests"},
	{"lab/specialize", "checkpoint", "an oracle shares no code with what it tests"},
	{"lab/specialize", "arch", "an oracle shares no code with what it tests"},
	{"lab/specialize", "forward", "an oracle shares no code with what it tests"},
	{"internal/monitor", "checkpoint", "the monitor sees captures; cmd makes them of checkpoints"},
	{"internal/monitor/pipeline", "checkpoint", "the monitor sees captures; cmd makes them of checkpoints"},
	{"internal/monitor/analyze", "arch", "the monitor sees captures; cmd makes them of checkpoints"},
	{"internal/monitor/ingest", "forward", "the monitor sees captures; cmd makes them of checkpoints"},
	{"internal/monitor/dashboard", "ROOT", "the monitor sees captures; cmd makes them of checkpoints"},
	{"report", "arch", "a report shows a result, whatever made it"},
	{"report", "forward", "a report shows a result, whatever made it"},
	{"report", "checkpoint", "a report shows a result, whatever made it"},
}

func TestImportsFollowTheRules(t *testing.T) {
	allowed := closure(parseRules(t, importRules))
	for pkg, imports := range ourImports(t) {
		if _, known := allowed[pkg]; !known {
			t.Errorf("package %s has no place in importRules", pkg)
			continue
		}
		for _, imp := range imports {
			if !allowed[pkg][imp] && !slices.Contains(leaves, imp) {
				t.Errorf("%s imports %s: no rule allows it", pkg, imp)
			}
			for _, r := range refused {
				if pkg == r.from && imp == r.to {
					t.Errorf("%s imports %s: refused, %s", pkg, imp, r.why)
				}
			}
		}
	}
}

func TestRulesAllowNothingRefused(t *testing.T) {
	allowed := closure(parseRules(t, importRules))
	for _, r := range refused {
		if allowed[r.from][r.to] {
			t.Errorf("importRules lets %s import %s: %s", r.from, r.to, r.why)
		}
	}
}

// parseRules reads "a, b < c < d;" into direct edges: c may import a, b.
func parseRules(t *testing.T, text string) map[string]map[string]bool {
	t.Helper()
	var lines []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		lines = append(lines, line)
	}
	edges := map[string]map[string]bool{}
	for rule := range strings.SplitSeq(strings.Join(lines, " "), ";") {
		var below []string
		for i, group := range strings.Split(rule, "<") {
			var names []string
			for name := range strings.SplitSeq(group, ",") {
				if name = strings.TrimSpace(name); name != "" {
					names = append(names, name)
				}
			}
			for _, name := range names {
				if name == "NONE" {
					continue
				}
				if edges[name] == nil {
					edges[name] = map[string]bool{}
				}
				for _, b := range below {
					if i > 0 && b != "NONE" {
						edges[name][b] = true
					}
				}
			}
			below = names
		}
	}
	return edges
}

// closure makes "may import" transitive.
func closure(edges map[string]map[string]bool) map[string]map[string]bool {
	for changed := true; changed; {
		changed = false
		for _, to := range edges {
			for b := range maps.Clone(to) {
				for c := range edges[b] {
					if !to[c] {
						to[c], changed = true, true
					}
				}
			}
		}
	}
	return edges
}

// ourImports lists, for each package of this module outside tests, the packages
// of this module that it imports. Nested modules are not part of it.
func ourImports(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string]map[string]bool{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipFolder(file, d)
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		pkg := packageOf(file)
		if pkg == "internal/testshared" { // for tests only
			return nil
		}
		if found[pkg] == nil {
			found[pkg] = map[string]bool{}
		}
		ast, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range ast.Imports {
			name, _ := strconv.Unquote(imp.Path.Value)
			switch {
			case name == modulePath:
				found[pkg]["ROOT"] = true
			case strings.HasPrefix(name, modulePath+"/"):
				found[pkg][strings.TrimPrefix(name, modulePath+"/")] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for pkg, imports := range found {
		all[pkg] = slices.Sorted(maps.Keys(imports))
	}
	return all
}

func skipFolder(dir string, d fs.DirEntry) error {
	if dir == "." {
		return nil
	}
	name := d.Name()
	if name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return filepath.SkipDir
	}
	if matches, _ := filepath.Glob(filepath.Join(dir, "go.mod")); len(matches) > 0 {
		return filepath.SkipDir
	}
	return nil
}

func packageOf(file string) string {
	dir := path.Dir(filepath.ToSlash(file))
	if dir == "." {
		return "ROOT"
	}
	return dir
}
