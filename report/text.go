package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/eigenhead/eigenhead/finding"
)

// TextOptions of the terminal form. The zero value is plain text of 80 columns.
type TextOptions struct {
	Width   int      // columns; 0: 80, less than 40: 40
	Color   bool     // SGR sequences
	Written []string // files that hold the full report, to be named at the end
}

// screenful is the number of lines that the terminal form aims at.
const screenful = 46

// WriteText writes about one screen: the model, the text and its perplexity,
// strips of layers × heads, the most notable heads with each number beside its
// null, and where the full report is.
func WriteText(w io.Writer, r *Report, o TextOptions) error {
	s := newScreen(o)
	s.model(r)
	s.input(r)
	s.strips(r)
	s.findings(r, s.room(r))
	s.footer(r, o.Written)
	return s.flush(w)
}

func newScreen(o TextOptions) *screen {
	if o.Width == 0 {
		o.Width = 80
	}
	return &screen{width: max(o.Width, 40), color: o.Color}
}

func (s *screen) model(r *Report) {
	m := r.Model
	facts := []string{m.Family, fmt.Sprintf("%s × %s", plural(m.Layers, "layer", "layers"), plural(m.Heads, "head", "heads"))}
	if m.KVHeads != m.Heads && m.KVHeads > 0 {
		facts = append(facts, plural(m.KVHeads, "KV head", "KV heads"))
	}
	facts = append(facts, fmt.Sprintf("head dim %d", m.HeadDim))
	if m.Parameters > 0 {
		facts = append(facts, short(m.Parameters)+" parameters")
	}
	facts = append(facts, strings.TrimSpace(r.Source.Format+" "+r.Source.DType))
	if m.Position != "" {
		p := m.Position
		switch p {
		case "learned":
			p = "learned positions"
		case "none":
			p = "no positions"
		}
		if m.RopeBase > 0 {
			p += " base " + shortest(m.RopeBase)
		}
		facts = append(facts, p)
	}
	if m.QKNorm {
		facts = append(facts, "QK-norm")
	}
	if m.Context > 0 {
		facts = append(facts, fmt.Sprintf("trained on %d tokens", m.Context))
	}
	name := r.Source.Path
	if m.Name != "" && m.Name != name {
		name += " (" + m.Name + ")"
	}
	s.line(s.paint(bold, cells.Truncate(clean(name), s.width, "…")))
	s.labeled(dim, "model  ", strings.Join(facts, " · "))
	if len(m.Defaults) > 0 {
		s.labeled(dim, "assumed  ", strings.Join(m.Defaults, "; "))
	}
}

func (s *screen) input(r *Report) {
	in := r.Input
	text := in.Text + ": " + in.amount()
	switch {
	case in.BOS != nil && in.EOS != nil:
		text += fmt.Sprintf(", %d in front and %d behind", *in.BOS, *in.EOS)
	case in.BOS != nil:
		text += fmt.Sprintf(", BOS %d in front", *in.BOS)
	case r.Model.Family == "capture": // it may hold one: nobody knows
		text += ", BOS unknown"
	case in.BOSSource != "":
		text += ", no BOS"
	}
	if in.BOSSource != "" {
		text += " (" + in.BOSSource + ")"
	}
	s.labeled(dim, "text   ", text)
	if in.NLL != nil && in.Perplexity != nil {
		text = fmt.Sprintf("perplexity %.2f = exp(%.4f nats a token)", *in.Perplexity, *in.NLL)
		if in.Protocol != "" {
			text += ", " + in.Protocol
		}
		s.labeled(plain, "       ", text)
	} else if in.Protocol != "" {
		s.labeled(plain, "       ", in.Protocol)
	}
}

// amount says how many tokens were used, of how many.
func (in *Input) amount() string {
	used := plural(in.Tokens, "token", "tokens")
	if in.Available > in.Tokens {
		used = fmt.Sprintf("%d of %s", in.Tokens, plural(in.Available, "token", "tokens"))
	}
	if in.Windows > 1 {
		return fmt.Sprintf("%d × %s", in.Windows, used)
	}
	return used
}

// room is the number of lines left for findings on one screen.
func (s *screen) room(r *Report) int {
	return screenful - s.lines - 4 - min(len(r.Warnings), maxWarnings)
}

const maxWarnings = 4

func (s *screen) footer(r *Report, written []string) {
	for i, w := range r.Warnings {
		if i == maxWarnings {
			s.line(fmt.Sprintf("and %s more", plural(len(r.Warnings)-i, "warning", "warnings")))
			break
		}
		s.labeled(yellow, "warning: ", w)
	}
	if text := omitted(r); text != "" {
		s.labeled(dim, "left out  ", text)
	}
	for i, file := range written { // never broken, so that it can be copied
		label := "full report  "
		if i > 0 {
			label = strings.Repeat(" ", len(label))
		}
		s.line(s.paint(dim, label) + file)
	}
}

// omitted says in a few words which measures are absent everywhere.
func omitted(r *Report) string {
	var parts []string
	seen := map[string]bool{}
	for _, o := range r.Omitted {
		if !seen[o.Measure] {
			seen[o.Measure] = true
			parts = append(parts, fmt.Sprintf("%s (%s)", o.Measure, o.Reason))
		}
	}
	if len(parts) > 2 {
		parts = append(parts[:1:1], plural(len(parts)-1, "other", "others")+" (see \"omitted\" in the JSON)")
	}
	return strings.Join(parts, ", ")
}

// count returns how many findings have a severity.
func count(list []finding.Finding, sev finding.Severity) int {
	n := 0
	for _, f := range list {
		if f.Severity == sev {
			n++
		}
	}
	return n
}
