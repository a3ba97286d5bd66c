package alert_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/alert"
	"github.com/eigenhead/eigenhead/measure"
)

// TestRules runs the cases of testdata. Each file holds cases that begin with
// "case NAME"; a case holds one line for each series, one number for each snapshot
// (the last one repeats, "-" is no value, "3x5" is 3 five times), and after a line
// "want" the alerts in order:
//
//	tokens 64, qk_norm
//	L0H0-3 attention.max_logit 20 20 120      heads 0 to 3
//	null L0KV0 key.incoherence 1.5 0.1        mean and spread
//	nonfinite 3 L0H1 q 5 3 NaN                snapshot, tensor, token, column, value
//	loss 3~0.01x128 4 3                       steps of a scalar; ~ alternates around
//	silent 60 60 60 7200                      seconds between an arrival and the next heartbeat
//	want
//	warn max-logit L0H0 30-50: part of the text     raised at 30, ended at 50
//
// Snapshots are ten steps apart, from 0.
func TestRules(t *testing.T) {
	seen := map[string]bool{}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		seen[strings.TrimSuffix(filepath.Base(file), ".txt")] = true
		for _, c := range readCases(t, file) {
			t.Run(filepath.Base(file)+"/"+c.name, func(t *testing.T) { c.run(t) })
		}
	}
	for _, r := range alert.All {
		if !seen[r.Code] {
			t.Errorf("%s has no cases", r.Code)
		}
	}
}

type ruleCase struct {
	name      string
	tokens    int
	qkNorm    bool
	series    map[string][]string // by "where measure"
	order     []string
	nulls     map[string]measure.Null
	nonFinite map[int][]measure.NonFinite
	scalars   map[string][]float64
	silent    []float64
	count     int // snapshots
	want      []string
}

func (c *ruleCase) run(t *testing.T) {
	e := alert.New("r", nil)
	var told []monitor.Alert
	for i := range c.count {
		told = append(told, e.Observe(c.analysis(i))...)
	}
	for i := 0; ; i++ {
		values := map[string]float64{}
		for name, list := range c.scalars {
			if i < len(list) {
				values[name] = list[i]
			}
		}
		if len(values) == 0 {
			break
		}
		told = append(told, e.Scalars(monitor.Scalars{Step: int64(i), Values: values})...)
	}
	now := time.Unix(1e9, 0)
	for _, gap := range c.silent {
		last := now
		now = now.Add(time.Duration(gap * float64(time.Second)))
		told = append(told, e.Heartbeat(last, now)...)
	}
	got := summary(told)
	for i := 0; i < max(len(got), len(c.want)); i++ {
		switch {
		case i >= len(got):
			t.Errorf("missing: %s", c.want[i])
		case i >= len(c.want):
			t.Errorf("unexpected: %s", got[i])
		default:
			place, part, _ := strings.Cut(c.want[i], ": ")
			if !strings.HasPrefix(got[i], place+": ") || !strings.Contains(got[i], part) {
				t.Errorf("alert %d: got  %s\nwant %s", i, got[i], c.want[i])
			}
		}
	}
}

// summary writes the last word on each alert, in the order in which they were raised.
func summary(told []monitor.Alert) []string {
	last := map[string]monitor.Alert{}
	var keys []string
	for _, a := range told {
		k := fmt.Sprint(a.Code, a.Where, a.Step)
		if _, ok := last[k]; !ok {
			keys = append(keys, k)
		}
		last[k] = a
	}
	var out []string
	for _, k := range keys {
		a := last[k]
		end := ""
		if a.Recovered != nil {
			end = fmt.Sprint(*a.Recovered)
		}
		out = append(out, fmt.Sprintf("%s %s %s %d-%s: %s", a.Severity, a.Code, a.Where, a.Step, end, a.Text))
	}
	return out
}

func (c *ruleCase) analysis(i int) *monitor.Analysis {
	a := &monitor.Analysis{Key: monitor.Key{Run: "r", Step: int64(10 * i)}, Tokens: c.tokens, QKNorm: c.qkNorm, NonFinite: c.nonFinite[i]}
	for _, k := range c.order {
		list := c.series[k]
		text := list[min(i, len(list)-1)]
		if text == "-" {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			panic(err)
		}
		where, name, _ := strings.Cut(k, " ")
		if name == "attention.max_logit" {
			a.Logits = append(a.Logits, logit(where, value))
		}
		v := monitor.Value{Where: where, Measure: name, Value: value}
		if n, ok := c.nulls[k]; ok {
			v.Null = &n
			if n.SD > 0 {
				z := (value - n.Mean) / n.SD
				v.Z = &z
			}
		}
		a.Values = append(a.Values, v)
	}
	return a
}

// logit is a score made of equal norms.
func logit(where string, value float64) monitor.Logit {
	return monitor.Logit{Where: where, KVHead: kvOf(where), Max: value, QueryNorm: value, KeyNorm: 2, Cosine: 0.5, Scale: 1, QueryMedian: value, KeyMedian: 2, OtherKeys: 0.9 * value}
}

// kvOf gives two heads one KV head.
func kvOf(where string) int {
	_, h := finding.Place(where)
	return h / 2
}

func readCases(t *testing.T, file string) []*ruleCase {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []*ruleCase
	inWant := false
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		line, _, _ := strings.Cut(s.Text(), "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if f[0] == "case" {
			all = append(all, &ruleCase{name: strings.Join(f[1:], " "), tokens: 64, series: map[string][]string{}, nulls: map[string]measure.Null{},
				nonFinite: map[int][]measure.NonFinite{}, scalars: map[string][]float64{}})
			inWant = false
			continue
		}
		c := all[len(all)-1]
		switch {
		case inWant:
			c.want = append(c.want, strings.TrimSpace(s.Text()))
		case f[0] == "want":
			inWant = true
		default:
			c.read(t, f)
		}
	}
	return all
}

func (c *ruleCase) read(t *testing.T, f []string) {
	t.Helper()
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	switch f[0] {
	case "tokens":
		c.tokens = int(number(f[1]))
	case "qk_norm":
		c.qkNorm = true
	case "null":
		for _, where := range places(f[1]) {
			c.nulls[where+" "+f[2]] = measure.Null{Mean: number(f[3]), SD: number(f[4])}
		}
	case "nonfinite":
		i := int(number(f[1]))
		c.nonFinite[i] = append(c.nonFinite[i], measure.NonFinite{Where: f[2], Tensor: f[3], Token: int(number(f[4])), Column: int(number(f[5])), Value: f[6]})
		c.count = max(c.count, i+1)
	case "loss", "grad_norm", "end":
		for _, text := range f[1:] {
			text, times := repeat(text)
			middle, width, _ := strings.Cut(text, "~")
			for i := range times {
				v := number(middle)
				if width != "" {
					v += number(width) * float64(1-2*(i%2))
				}
				c.scalars[f[0]] = append(c.scalars[f[0]], v)
			}
		}
	case "silent":
		for _, text := range f[1:] {
			c.silent = append(c.silent, number(text))
		}
	default:
		var list []string
		for _, text := range f[2:] {
			text, times := repeat(text)
			list = append(list, slices.Repeat([]string{text}, times)...)
		}
		c.count = max(c.count, len(list))
		for _, where := range places(f[0]) {
			k := where + " " + f[1]
			if c.series[k] == nil {
				c.order = append(c.order, k)
			}
			c.series[k] = list
		}
	}
}

func repeat(text string) (string, int) {
	value, times, ok := strings.Cut(text, "x")
	n, err := strconv.Atoi(times)
	if !ok || err != nil {
		return text, 1
	}
	return value, n
}

// places reads "L0H1", "L0H1-3" or "L0-2".
func places(s string) []string {
	from, to, ok := strings.Cut(s, "-")
	if !ok {
		return []string{s}
	}
	cut := strings.LastIndexAny(from, "HLV") + 1
	lo, _ := strconv.Atoi(from[cut:])
	hi, _ := strconv.Atoi(to)
	var out []string
	for i := lo; i <= hi; i++ {
		out = append(out, from[:cut]+strconv.Itoa(i))
	}
	return out
}
