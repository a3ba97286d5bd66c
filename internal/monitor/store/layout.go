package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// A layout is a list of places, kept once: heads rarely change during a run.

// maxPlace bounds the name of a place.
const maxPlace = 64

func checkPlace(place string) error {
	bad := func(r rune) bool { return r < ' ' || r == 0x7f }
	if place == "" || len(place) > maxPlace || !utf8.ValidString(place) || strings.ContainsFunc(place, bad) {
		return &xerr.Format{What: "place", Found: fmt.Sprintf("%.80q", place), Want: `a name such as "L3H5"`}
	}
	return nil
}

// layout returns the id of a list of places, kept now if it is new.
func (g *group) layout(places []string) (int64, error) {
	text := strings.Join(places, "\n")
	sum := sha256.Sum256([]byte(text))
	var id int64
	found, err := g.scan(`SELECT id FROM layouts WHERE sha256 = ?`, []any{sum[:]}, &id)
	if found || err != nil {
		return id, err
	}
	return g.insert(`INSERT INTO layouts (sha256, places) VALUES (?, ?)`, sum[:], text)
}

// layouts keeps the lists of places that were read; a kept list is never changed.
type layouts struct {
	mu   sync.Mutex
	byID map[int64][]string
}

// maxLayouts bounds the memory of layouts: past it, it starts anew.
const maxLayouts = 256

type rowQueryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (l *layouts) get(ctx context.Context, db rowQueryer, id int64) ([]string, error) {
	l.mu.Lock()
	places, ok := l.byID[id]
	l.mu.Unlock()
	if ok {
		return places, nil
	}
	var text string
	if err := db.QueryRowContext(ctx, `SELECT places FROM layouts WHERE id = ?`, id).Scan(&text); err != nil {
		return nil, fmt.Errorf("layout %d: %w", id, err)
	}
	if text != "" { // of no places
		places = strings.Split(text, "\n")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID == nil || len(l.byID) >= maxLayouts {
		l.byID = map[int64][]string{}
	}
	l.byID[id] = places
	return places, nil
}

// classOf is a place without its numbers: "LH", "LKV", "L", "run".
func classOf(place string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, place)
}

// comparePlaces orders places as people do: L2H10 before L10H2.
func comparePlaces(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		dx, dy := digits(x), digits(y)
		if dx == 0 || dy == 0 {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		nx, ny := strings.TrimLeft(x[:dx], "0"), strings.TrimLeft(y[:dy], "0")
		if c := cmp.Or(cmp.Compare(len(nx), len(ny)), cmp.Compare(nx, ny)); c != 0 {
			return c
		}
		x, y = x[dx:], y[dy:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

// digits is how many digits s begins with.
func digits(s string) int {
	n := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if n < 0 {
		return len(s)
	}
	return n
}

// union is all places of several layouts, in natural order.
func union(lists [][]string) []string {
	if len(lists) == 1 && slices.IsSortedFunc(lists[0], comparePlaces) {
		return lists[0]
	}
	seen := map[string]bool{}
	var all []string
	for _, list := range lists {
		for _, place := range list {
			if !seen[place] {
				seen[place] = true
				all = append(all, place)
			}
		}
	}
	slices.SortFunc(all, comparePlaces)
	return all
}
