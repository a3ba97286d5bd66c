// Package auth decides who may talk to the monitor: one bearer token for each data
// folder, shown once, kept only as a hash, and a session cookie for browsers that
// is made of it. It knows nothing of runs or captures.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/eigenhead/eigenhead/internal/atomicfile"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// FileName is the file in the data folder that holds the hashes.
const FileName = "auth.json"

// tokenPrefix lets people and secret scanners see what a leaked token opens.
const tokenPrefix = "eh_"

// tokenBytes of randomness: a plain hash of that many needs no salt and no stretching.
const tokenBytes = 32

// Guard lets those in who show the token, or a session that was opened with it.
// The zero Guard lets nobody in. It is safe for concurrent use; set its field first.
type Guard struct {
	Secure bool // cookies go over TLS only

	open    bool
	token   [sha256.Size]byte // of the token
	session [sha256.Size]byte // of the session's value
}

// kept is the content of FileName. Neither hash opens anything.
type kept struct {
	Format  string `json:"format"`
	Token   string `json:"token_sha256"`
	Session string `json:"session_sha256"`
}

const format = "eigenhead.auth/1"

// Everyone returns a guard without a token, for an address that only this machine
// can reach. It still turns away what other web pages send.
func Everyone() *Guard { return &Guard{open: true} }

// Open returns the guard of the data folder dir. The first time it makes a token
// and returns it: it cannot be read again. Later token is "".
//
// Errors: *xerr.Format for a damaged file; the system's.
func Open(dir string) (g *Guard, token string, err error) {
	path := filepath.Join(dir, FileName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Renew(dir)
	}
	if err != nil {
		return nil, "", err
	}
	var k kept
	if err := json.Unmarshal(data, &k); err != nil || k.Format != format {
		return nil, "", damaged(path, "format", fmt.Sprintf("%q", k.Format), fmt.Sprintf("%q", format))
	}
	g = &Guard{}
	for what, at := range map[string]struct {
		text string
		to   *[sha256.Size]byte
	}{"token_sha256": {k.Token, &g.token}, "session_sha256": {k.Session, &g.session}} {
		sum, err := hex.DecodeString(at.text)
		if err != nil || len(sum) != sha256.Size {
			return nil, "", damaged(path, what, fmt.Sprintf("%d characters", len(at.text)), "64 hexadecimal digits")
		}
		*at.to = [sha256.Size]byte(sum)
	}
	return g, "", nil
}

func damaged(path, what string, found, want any) error {
	return &xerr.Format{File: path, What: what, Found: found, Want: want, Hint: "serve --new-token makes a new one"}
}

// Renew makes a new token for the data folder dir and returns it; an earlier one,
// and the sessions opened with it, end.
func Renew(dir string) (*Guard, string, error) {
	var secret [tokenBytes]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return nil, "", err
	}
	token := tokenPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	g := &Guard{token: sha256.Sum256([]byte(token)), session: sha256.Sum256([]byte(sessionOf(token)))}
	data, err := json.MarshalIndent(kept{format, hex.EncodeToString(g.token[:]), hex.EncodeToString(g.session[:])}, "", "  ")
	if err != nil {
		return nil, "", err
	}
	path := filepath.Join(dir, FileName)
	f, err := atomicfile.Create(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Abort()
	if _, err := f.Write(append(data, '\n')); err != nil {
		return nil, "", err
	}
	if err := f.Commit(); err != nil {
		return nil, "", err
	}
	return g, token, os.Chmod(path, 0o600)
}

// sessionOf is what a browser keeps: it opens the same doors as the token, lasts over
// a restart, and does not tell the token.
func sessionOf(token string) string {
	sum := sha256.Sum256([]byte("eigenhead session\x00" + token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// isToken and isSession take the same time whatever is shown.
func (g *Guard) isToken(s string) bool { return same(s, g.token) }

func (g *Guard) isSession(s string) bool { return same(s, g.session) }

func same(s string, want [sha256.Size]byte) bool {
	var none [sha256.Size]byte
	got := sha256.Sum256([]byte(s))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1 && want != none
}
