package report

import (
	"io"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// Rules of the terminal: no line is longer than the width; colors repeat what
// words or shades already say; a column's numbers end below each other.

// cells measures text in terminal columns; ambiguous characters take one.
var cells = &runewidth.Condition{StrictEmojiNeutral: true}

// style is an SGR sequence.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "1;31"
	yellow style = "1;33"
)

// screen collects lines.
type screen struct {
	strings.Builder
	width int
	color bool
	lines int
}

func (s *screen) flush(w io.Writer) error {
	_, err := io.WriteString(w, s.String())
	return err
}

// paint wraps text in a style, where colors are wanted.
func (s *screen) paint(st style, text string) string {
	if !s.color || st == plain || text == "" {
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[0m"
}

// line writes one line that the caller has fitted to the width.
func (s *screen) line(text string) {
	s.WriteString(strings.TrimRight(strings.ReplaceAll(text, "\u00a0", " "), " ") + "\n")
	s.lines++
}

// clean replaces control characters: names from files must not steer the terminal.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r):
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
}

// labeled writes text after a label, further lines indented below it.
func (s *screen) labeled(st style, label, text string) {
	label, text = clean(label), clean(text)
	indent := cells.StringWidth(label)
	for i, part := range wrapText(text, max(s.width-indent, 10)) {
		head := strings.Repeat(" ", indent)
		if i == 0 {
			head = s.paint(st, label)
		}
		s.line(head + part)
	}
}

// wrapText breaks text into lines of at most width columns, at blanks but not at
// no-break spaces; a word that is longer than a line is cut.
func wrapText(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\n' || r == '\t' }) {
		for cells.StringWidth(word) > width {
			if line != "" {
				lines = append(lines, line)
				line = ""
			}
			head := cells.Truncate(word, width, "")
			if head == "" { // one character wider than the line
				break
			}
			lines = append(lines, head)
			word = word[len(head):]
		}
		longer := strings.TrimPrefix(line+" "+word, " ")
		if line != "" && cells.StringWidth(longer) > width {
			lines = append(lines, line)
			longer = word
		}
		line = longer
	}
	return append(lines, line)
}

// left and right pad text to n columns and cut what is longer.
func left(text string, n int) string { return cells.FillRight(cells.Truncate(text, n, "…"), n) }

func right(text string, n int) string { return cells.FillLeft(cells.Truncate(text, n, "…"), n) }
