package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
)

// illness is the level that a run's signal is held against, and the rules that name it.
type illness struct {
	level string
	codes []string
}

// illnesses are the signals of tools/recordedruns/signals.py.
var illnesses = map[string]illness{
	"max-logit":          {"largest logit of a head > 100", []string{"max-logit", "logit-growth"}},
	"entropy-collapse":   {"entropy of a head < 0.03", []string{"entropy-collapse"}},
	"collapsed-residual": {"token residual < 0.1, cosine > 0.9", []string{"rank-collapse"}},
	"non-finite":         {"a number that is not finite", []string{"non-finite"}},
}

// allowed is how many snapshots after its signal crossed an illness may still be
// raised, where the loss shows it earlier. Chosen, not derived: patience of two snapshots.
const allowed = 2

// outcome is one run with what the rules made of it.
type outcome struct {
	recorded
	first *monitor.Alert // the first warning or worse, whatever its rule
	own   *monitor.Alert // the first one of a rule that names the run's illness
	warns int
}

// judge finds the alerts that count in those of a run, which come by step.
func judge(r recorded, alerts []monitor.Alert) outcome {
	o := outcome{recorded: r}
	for i := range alerts {
		a := &alerts[i]
		if a.Severity == finding.Info {
			continue
		}
		o.warns++
		if o.first == nil {
			o.first = a
		}
		if o.own == nil && slices.Contains(illnesses[r.Signal].codes, a.Code) {
			o.own = a
		}
	}
	return o
}

// snapshots is how many snapshots the run had from the crossing up to the alert of its
// illness; 0 where the alert came first.
func (o outcome) snapshots() int64 {
	return max(0, o.own.Step/o.Every-(o.Crossed[o.Signal]-1)/o.Every)
}

// caught says by which half of the promise the run holds; ok is false where it does not.
func (o outcome) caught() (how string, ok bool) {
	switch {
	case o.Signal == "" && o.warns == 0:
		return "no warning in " + fmt.Sprint(o.Steps) + " steps", true
	case o.Signal == "":
		return "FALSE ALARM", false
	case o.own == nil:
		return "MISSED", false
	}
	var said []string
	if o.LossShows == nil {
		said = append(said, "the loss never shows it")
	} else if o.own.Step < *o.LossShows {
		said = append(said, "before the loss")
	}
	if n := o.snapshots(); n <= allowed {
		said = append(said, fmt.Sprintf("snapshot %d after crossing", n))
	}
	if len(said) == 0 {
		return "LATE", false
	}
	return strings.Join(said, "; "), true
}

// markdown is the table, a line for each run.
func markdown(all []outcome) string {
	var b strings.Builder
	b.WriteString("| run | signal and level | crosses at step | loss shows it | first warning | alert of the illness | lead over the loss | caught |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, o := range all {
		how, _ := o.caught()
		crossed, level := "never", "none"
		if o.Signal != "" {
			crossed, level = fmt.Sprint(o.Crossed[o.Signal]), illnesses[o.Signal].level
		}
		fmt.Fprintf(&b, "| %s, every %d | %s | %s | %s | %s | %s | %s | %s |\n", o.Run, o.Every, level, crossed,
			o.loss(), named(o.first), named(o.own), o.lead(), how)
	}
	return b.String()
}

func (o outcome) loss() string {
	if o.LossShows == nil {
		return "never in " + fmt.Sprint(o.Steps)
	}
	return fmt.Sprintf("%d (%s)", *o.LossShows, o.LossHow)
}

func (o outcome) lead() string {
	if o.own == nil || o.LossShows == nil {
		return "–"
	}
	return fmt.Sprintf("%d steps", *o.LossShows-o.own.Step)
}

func named(a *monitor.Alert) string {
	if a == nil {
		return "none"
	}
	return fmt.Sprintf("%d `%s` %s %s", a.Step, a.Code, a.Where, a.Severity)
}
