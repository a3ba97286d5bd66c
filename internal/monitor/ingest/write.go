package ingest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// postCapture keeps the capture file that is the body: 201 when it is new and on
// disk, 200 when the very same was there.
func (h *server) postCapture(w http.ResponseWriter, r *http.Request) {
	run := r.PathValue("run")
	if err := monitor.CheckRun(run); err != nil {
		h.fail(w, r, err)
		return
	}
	if r.ContentLength > h.opts.Limit {
		h.fail(w, r, fmt.Errorf("capture: %d bytes, want at most %d: %w", r.ContentLength, h.opts.Limit, store.ErrTooLarge))
		return
	}
	body, err := digest(r, h.steady(w, r))
	if err != nil {
		h.fail(w, r, err)
		return
	}
	snap, created, err := h.intake.Accept(r.Context(), run, body)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	answer(w, status, snap)
}

// Bounds of a post of scalars.
const (
	maxLines  = 10000
	maxNames  = 64 // of a line
	maxScalar = maxScalarsBody
)

var scalarName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]{0,63}$`)

// postScalars keeps lines of numbers: all of them, or none.
func (h *server) postScalars(w http.ResponseWriter, r *http.Request) {
	select {
	case h.posts <- struct{}{}:
		defer func() { <-h.posts }()
	default:
		busy(w, "too many posts of scalars at the same time", 1)
		return
	}
	if err := monitor.CheckRun(r.PathValue("run")); err != nil {
		h.fail(w, r, err)
		return
	}
	data, err := io.ReadAll(io.LimitReader(h.steady(w, r), maxScalar+1))
	if err == nil && len(data) > maxScalar {
		err = fmt.Errorf("scalars: more than %d bytes in one post: %w", maxScalar, store.ErrTooLarge)
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	list, err := parseScalars(data)
	if err == nil {
		err = h.intake.Scalars(r.Context(), r.PathValue("run"), list)
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	answer(w, http.StatusOK, map[string]int{"kept": len(list)})
}

// parseScalars reads lines such as {"step":12,"loss":3.1,"lr":"NaN"}. Empty lines
// are skipped.
//
// Errors: *xerr.Format with the line's number.
func parseScalars(data []byte) ([]monitor.Scalars, error) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxScalar+1)
	var list []monitor.Scalars
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if len(list) == maxLines {
			return nil, &xerr.Format{File: "scalars", What: "lines", Found: "more", Want: fmt.Sprintf("at most %d in one post", maxLines)}
		}
		s, err := parseLine(line)
		if err != nil {
			err.File = fmt.Sprintf("scalars: line %d", n)
			return nil, err
		}
		list = append(list, s)
	}
	return list, lines.Err()
}

func parseLine(line []byte) (monitor.Scalars, *xerr.Format) {
	s := monitor.Scalars{Step: -1}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(line, &raw); err != nil {
		return s, &xerr.Format{What: "JSON", Found: err.Error(), Want: `an object such as {"step":12,"loss":3.1}`,
			Hint: `a number that is not finite is the string "NaN", "Infinity" or "-Infinity"`}
	}
	if len(raw) > maxNames+1 {
		return s, &xerr.Format{What: "names", Found: len(raw), Want: fmt.Sprintf("at most %d", maxNames)}
	}
	s.Values = make(map[string]float64, len(raw))
	for name, text := range raw {
		if name == "step" {
			step, err := strconv.ParseInt(string(text), 10, 64)
			if err != nil || step < 0 || step > monitor.MaxStep {
				return s, &xerr.Format{What: `"step"`, Found: fmt.Sprintf("%.40s", text), Want: fmt.Sprintf("a whole number from 0 to %d", int64(monitor.MaxStep))}
			}
			s.Step = step
			continue
		}
		if !scalarName.MatchString(name) {
			return s, &xerr.Format{What: "name", Found: fmt.Sprintf("%.80q", name), Want: "1 to 64 letters, digits, dots, slashes, underscores and hyphens, a letter first"}
		}
		v, ok := number(text)
		if !ok {
			return s, &xerr.Format{What: strconv.Quote(name), Found: fmt.Sprintf("%.40s", text), Want: `a number, or "NaN", "Infinity" or "-Infinity"`}
		}
		s.Values[name] = v
	}
	if s.Step < 0 {
		return s, &xerr.Format{What: `"step"`, Found: "missing", Want: "the training step"}
	}
	return s, nil
}

var notFinite = map[string]float64{`"NaN"`: math.NaN(), `"Infinity"`: math.Inf(1), `"-Infinity"`: math.Inf(-1)}

func number(text json.RawMessage) (float64, bool) {
	if v, ok := notFinite[string(text)]; ok {
		return v, true
	}
	var v *float64
	err := json.Unmarshal(text, &v)
	if err != nil || v == nil {
		return 0, false
	}
	return *v, true
}
