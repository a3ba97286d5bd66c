package eigenhead

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/eigenhead/eigenhead/internal/demo"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/report"
)

// maxText bounds a text file: a window never needs more.
const maxText = 1 << 30

// window is the tokens of one scan and how they came to be.
type window struct {
	ids      []int   // all that there are, until window cuts them
	cuts     [][]int // the windows, each Context ids
	input    report.Input
	warn     []string
	back     []int    // the id that the text's own settings put behind a window, or none
	defaults []string // settings that the tokenizer's file leaves out
}

// window chooses the tokens that run through the model.
func (s *source) window(opts *Options) (*window, error) {
	if s.capture != nil {
		return s.capturedWindow(opts)
	}
	w, err := s.read(opts)
	if err != nil {
		return nil, err
	}
	n, err := s.length(opts, len(w.ids)+len(w.back))
	if err != nil {
		return nil, err
	}
	if s.model.Context > 0 && n > s.model.Context {
		w.warn = append(w.warn, fmt.Sprintf("context %d is longer than the %d tokens that the model was trained on", n, s.model.Context))
	}
	w.input.Available = len(w.ids) + len(w.back)
	w.input.Tokens, w.input.Context = n, n
	return w, w.cut(n, max(opts.Windows, 1))
}

// cut makes consecutive windows of n ids, each with what the text's own settings
// put in front and behind.
func (w *window) cut(n, count int) error {
	front := w.ids[:0:0]
	body := w.ids
	if w.input.BOS != nil {
		front, body = body[:1:1], body[1:]
	}
	step := n - len(front) - len(w.back)
	if step < 1 {
		return &xerr.Usage{Flag: "--context", Found: n, Want: fmt.Sprintf("at least %d: the tokenizer's settings put ids at the ends", n-step+1)}
	}
	if have := len(body) / step; count > have {
		return &xerr.Usage{Flag: "--windows", Found: count, Want: fmt.Sprintf("at most %d windows of %d tokens, which the text has", have, n),
			Hint: "give a longer --text, a shorter --context or fewer --windows"}
	}
	for i := range count {
		w.cuts = append(w.cuts, slices.Concat(front, body[i*step:(i+1)*step], w.back))
	}
	w.ids = w.cuts[0]
	w.input.Protocol = fmt.Sprintf("one window of %d tokens, nll of tokens 2..%d", n, n)
	if count > 1 {
		w.input.Windows = count
		w.input.Protocol = fmt.Sprintf("mean over %d consecutive windows of %d tokens, nll of tokens 2..%d of each", count, n, n)
	}
	return nil
}

// read returns all the tokens there are.
func (s *source) read(opts *Options) (*window, error) {
	if opts.Tokens != "" {
		if opts.Text != "" {
			return nil, &xerr.Usage{Flag: "--tokens", Found: "given together with --text", Want: "one of the two"}
		}
		return s.readIDs(opts.Tokens)
	}
	tok, err := s.tokenizer()
	if err != nil {
		return nil, hintTokens(err)
	}
	text, name := demo.Text(), "embedded"
	if opts.Text != "" {
		if text, err = readText("--text", opts.Text); err != nil {
			return nil, err
		}
		name = baseName(opts.Text)
	}
	sum := sha256.Sum256(text)
	w := &window{input: report.Input{Text: name, TextSHA256: hex.EncodeToString(sum[:])}}
	id, add, why := tok.BOS()
	w.input.BOSSource = s.unplaced(why)
	if add {
		w.ids, w.input.BOS = append(w.ids, id), &id
	}
	if end, add := tok.End(); add {
		w.back, w.input.EOS = []int{end}, &end
	}
	ids, err := tok.EncodeStrict(text, false)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, hintEmbedded(opts, err))
	}
	for _, d := range tok.Defaults() {
		w.defaults = append(w.defaults, s.unplaced(d))
	}
	if n := firstInvalid(text); n >= 0 {
		w.warn = append(w.warn, fmt.Sprintf("%s is no UTF-8 from byte %d on; its bytes were taken as they are", name, n))
	}
	w.ids = append(w.ids, ids...)
	return w, s.checkIDs(name, w.ids)
}

// readIDs reads a JSON list of token ids.
func (s *source) readIDs(file string) (*window, error) {
	data, err := readText("--tokens", file)
	if err != nil {
		return nil, err
	}
	var ids []int
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&ids); err != nil || dec.More() {
		return nil, &xerr.Format{File: file, Found: "not a list of whole numbers", Want: "a JSON list of token ids such as [1, 403, 407]",
			Hint: "eigenhead tokenize MODEL --text FILE --json - prints one"}
	}
	if len(ids) == 0 {
		return nil, &xerr.Format{File: file, Found: "no ids", Want: "at least 2 token ids"}
	}
	return &window{ids: ids, input: report.Input{Text: "tokens", BOSSource: "--tokens: ids are taken as they are"}}, s.checkIDs(file, ids)
}

func (s *source) checkIDs(where string, ids []int) error {
	for i, id := range ids {
		if id < 0 || id >= s.model.Vocab {
			return &xerr.Format{File: where, What: fmt.Sprintf("token %d", i), Found: fmt.Sprintf("id %d", id),
				Want: fmt.Sprintf("0 to %d (vocabulary of %s)", s.model.Vocab-1, s.name),
				Hint: "the ids may come from another tokenizer"}
		}
	}
	return nil
}

// length decides how many of the available tokens are used.
func (s *source) length(opts *Options, available int) (int, error) {
	limit := math.MaxInt
	if s.model.Context > 0 && s.model.Position == "learned" {
		limit = s.model.Context
	}
	n := opts.Context
	switch {
	case n < 0 || n == 1:
		return 0, &xerr.Usage{Flag: "--context", Found: n, Want: "at least 2"}
	case n == 0 && opts.Tokens != "":
		n = available
	case n == 0:
		n = min(DefaultContext, available)
		if s.model.Context > 0 {
			n = min(n, s.model.Context)
		}
	case n > available:
		return 0, &xerr.Usage{Flag: "--context", Found: n, Want: fmt.Sprintf("at most %d, the tokens that the text has", available),
			Hint: "give a longer " + opts.input() + " or a shorter --context"}
	}
	if n > limit {
		return 0, &xerr.Usage{Flag: "--context", Found: n, Want: fmt.Sprintf("at most %d, the learned positions of %s", limit, s.name)}
	}
	if n < 2 {
		return 0, &xerr.Usage{Flag: opts.input(), Found: fmt.Sprintf("length %d", n), Want: "at least 2 tokens"}
	}
	return n, nil
}

// input is the flag that the tokens come from.
func (o *Options) input() string {
	if o.Tokens != "" {
		return "--tokens"
	}
	return "--text"
}

// unplaced takes the model's folder out of the names of its files: a report says
// nothing of where on a machine it was made.
func (s *source) unplaced(text string) string {
	if s.path == Demo {
		return text
	}
	for _, dir := range []string{s.path, filepath.Dir(s.path)} {
		dir += string(filepath.Separator)
		text = strings.TrimPrefix(strings.ReplaceAll(text, " "+dir, " "), dir)
	}
	return text
}

// firstInvalid is the offset of the first byte that is no UTF-8; -1: none.
func firstInvalid(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for i := 0; ; {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
}

// capturedWindow describes the tokens that a capture was made of.
func (s *source) capturedWindow(opts *Options) (*window, error) {
	for _, f := range []struct {
		flag string
		set  bool
	}{{"--text", opts.Text != ""}, {"--tokens", opts.Tokens != ""}, {"--context", opts.Context != 0}, {"--windows", opts.Windows > 1}, {"--capture", opts.Capture != ""}} {
		if f.set {
			return nil, &xerr.Usage{Flag: f.flag, Found: "given for a capture", Want: "a model: a capture holds its own tokens"}
		}
	}
	n := s.capture.T()
	return &window{ids: s.capture.Meta.Tokens, cuts: [][]int{s.capture.Meta.Tokens}, input: report.Input{
		Text: "capture", Tokens: n, Available: n, Context: n,
		BOSSource: "a capture does not say", Protocol: "a capture has no logits, so no nll",
	}}, nil
}

// readText reads a whole file that a flag names, and refuses an empty one.
func readText(flag, file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, cannotRead(flag, file, err)
	}
	if info.IsDir() {
		return nil, &xerr.Usage{Flag: flag + " " + file, Found: "a folder", Want: "a file"}
	}
	if info.Size() > maxText {
		return nil, &xerr.Usage{Flag: flag + " " + file, Found: fmt.Sprintf("%d bytes", info.Size()), Want: fmt.Sprintf("at most %d", maxText)}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, cannotRead(flag, file, err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, &xerr.Format{File: file, Found: "empty", Want: "a text"}
	}
	return data, nil
}

func cannotRead(flag, file string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return &xerr.Usage{Flag: flag + " " + file, Found: pe.Err, Want: "a file that can be read"}
	}
	return err
}

// hintEmbedded tells users whose vocabulary lacks a character of the embedded text
// what to do: they cannot change that text.
func hintEmbedded(opts *Options, err error) error {
	var u *xerr.Unsupported
	var f *xerr.Format
	if opts.Text != "" {
		return err
	}
	const hint = "give a --text that this vocabulary can express"
	switch {
	case errors.As(err, &f):
		f.Hint = hint
	case errors.As(err, &u):
		u.Hint = hint
	}
	return err
}

// hintTokens points users of a model without a tokenizer at --tokens.
func hintTokens(err error) error {
	var f *xerr.Format
	var u *xerr.Unsupported
	const hint = "--tokens FILE.json takes token ids in place of a text"
	switch {
	case errors.As(err, &f):
		f.Hint = strings.TrimPrefix(f.Hint+"; "+hint, "; ")
	case errors.As(err, &u):
		u.Hint = strings.TrimPrefix(u.Hint+"; "+hint, "; ")
	}
	return err
}
