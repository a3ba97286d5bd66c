package main

// Rules of the terminal, in one place:
//   - results go to stdout, progress and messages to stderr;
//   - colour only where the stream is a terminal, and never under NO_COLOR or TERM=dumb;
//   - a progress bar only where stderr is a terminal, and only after two seconds;
//   - the width is the terminal's, else $COLUMNS, else 80, never below 40.

import (
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

type terminal struct {
	width    int
	color    bool // stdout
	errColor bool // stderr
	bars     bool
}

func newTerminal(stdout, stderr *os.File) terminal {
	plain := os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	out, errs := term.IsTerminal(int(stdout.Fd())), term.IsTerminal(int(stderr.Fd()))
	return terminal{
		width:    width(stdout, out),
		color:    out && !plain,
		errColor: errs && !plain,
		bars:     errs && os.Getenv("TERM") != "dumb",
	}
}

func width(f *os.File, isTerminal bool) int {
	w := 80
	if isTerminal {
		if cols, _, err := term.GetSize(int(f.Fd())); err == nil && cols > 0 {
			w = cols
		}
	} else if cols, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && cols > 0 {
		w = cols
	}
	return max(w, 40)
}

func (t terminal) red(s string) string {
	if !t.errColor {
		return s
	}
	return "\x1b[31m" + s + "\x1b[0m"
}

// patience is how long a command may run before a progress bar appears.
const patience = 2 * time.Second

// progress returns a function to call with the work done so far and in all, and
// one that removes the bar. Without a terminal both do nothing.
func (e *env) progress(what string) (update func(done, total int64), clear func()) {
	if !e.term.bars {
		return func(int64, int64) {}, func() {}
	}
	start := time.Now()
	var mu sync.Mutex // work that an interrupt left behind may still report
	var bar *progressbar.ProgressBar
	cleared := false
	var said time.Time
	update = func(done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		if cleared {
			return
		}
		if bar == nil {
			if time.Since(start) < patience || done >= total {
				return
			}
			bar = newBar(e.stderr, what, total)
		}
		if now := time.Now(); now.Sub(said) >= time.Second {
			said = now
			bar.Describe(what + left(now.Sub(start), done, total))
		}
		_ = bar.Set64(done)
	}
	clear = func() {
		mu.Lock()
		defer mu.Unlock()
		cleared = true
		if bar != nil {
			_ = bar.Clear()
		}
	}
	return update, clear
}

func newBar(w io.Writer, what string, total int64) *progressbar.ProgressBar {
	return progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionClearOnFinish())
}

// left says how much longer work takes that goes on as it went so far. Before a
// hundredth is done it would be a guess.
func left(elapsed time.Duration, done, total int64) string {
	if done <= total/100 || done >= total {
		return ""
	}
	s := int(math.Ceil(elapsed.Seconds() * float64(total-done) / float64(done)))
	switch {
	case s >= 3600:
		return fmt.Sprintf(", %d h %d min left", s/3600, s%3600/60)
	case s >= 60:
		return fmt.Sprintf(", %d min left", (s+30)/60)
	}
	return fmt.Sprintf(", %d s left", s)
}

// say prints a message for the person at the terminal.
func (e *env) say(format string, args ...any) { fmt.Fprintf(e.stderr, format+"\n", args...) }
