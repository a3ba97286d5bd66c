// Package xerr holds the kinds of error that the world causes: malformed input,
// input that is sound but refused, and wrong flags. Each says where, what was
// found and what was wanted; the hint is for the command line to print.
package xerr

import (
	"errors"
	"fmt"
	"strings"
)

// Format says that input is malformed.
type Format struct {
	File  string // file, then tensor or key if there is one: `a.safetensors: tensor "x"`
	What  string // the property, such as "shape"
	Found any
	Want  any
	Hint  string // the next step; may be empty
}

// Error prints "file: what: found, want wanted".
func (e *Format) Error() string { return text(e.File, e.What, e.Found, e.Want) }

// Unsupported says that input is sound but that we refuse it, by name.
type Unsupported struct {
	File  string
	What  string
	Found any
	Want  any
	Hint  string
}

// Error prints "file: what: found, want wanted".
func (e *Unsupported) Error() string { return text(e.File, e.What, e.Found, e.Want) }

// Usage says that a flag or argument is wrong.
type Usage struct {
	Flag  string
	Found any
	Want  any
	Hint  string
}

// Error prints "flag: found, want wanted".
func (e *Usage) Error() string { return text(e.Flag, "", e.Found, e.Want) }

// Hint returns the hint of the first error in the chain that has one.
func Hint(err error) string {
	var f *Format
	var u *Unsupported
	var g *Usage
	switch {
	case errors.As(err, &f):
		return f.Hint
	case errors.As(err, &u):
		return u.Hint
	case errors.As(err, &g):
		return g.Hint
	}
	return ""
}

// Input reports whether err is the input's or the caller's fault, not ours.
func Input(err error) bool {
	var f *Format
	var u *Unsupported
	var g *Usage
	return errors.As(err, &f) || errors.As(err, &u) || errors.As(err, &g)
}

func text(where, what string, found, want any) string {
	var b strings.Builder
	b.WriteString(where)
	if what != "" {
		if where != "" { // a value that came from no file: what it is says where
			b.WriteString(": ")
		}
		b.WriteString(what)
	}
	if found != nil {
		fmt.Fprintf(&b, ": %v", found)
	}
	if want != nil {
		fmt.Fprintf(&b, ", want %v", want)
	}
	return b.String()
}
