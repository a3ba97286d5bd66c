package tokenizer

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// unigram is SentencePiece's unigram model: of all ways to cut a text into
// tokens, the one whose scores, which are logarithms of probabilities, have the
// largest sum. A character without a token of its own can always be unknown, at
// a score ten below the worst token's. Viterbi's algorithm finds it in one pass:
// best[i] is the best way to cut the first i bytes.
//
// Of equal ways the one found first wins, that is, the one whose last token is
// longest. Scores are summed in float64, as both references do.
// Source: tokenizers, models/unigram (encode_optimized); llama.cpp,
// llm_tokenizer_ugm_session.
type unigram struct {
	words    words
	scores   []float64 // by id
	ids      map[string]int32
	unkScore float64
	unk      int32
	bytes    *[256]int32 // <0xNN> for what is unknown; nil: none
	fuse     bool        // neighbors that are unknown are one
}

// unkPenalty is SentencePiece's kUnkPenalty.
const unkPenalty = 10

type cut struct {
	score float64
	from  int32
	id    int32 // noID: nothing ends here
}

func newUnigram(file string, ids map[string]int32, scores []float64, unk int32, worst float64) (*unigram, error) {
	for i, s := range scores {
		if math.IsNaN(s) || math.IsInf(s, 0) {
			return nil, &xerr.Format{File: file, What: fmt.Sprintf("score of token %d", i), Found: s, Want: "a finite number"}
		}
	}
	w, err := newWords(file, ids)
	if err != nil {
		return nil, err
	}
	return &unigram{words: w, scores: scores, ids: ids, unkScore: worst - unkPenalty, unk: unk, fuse: true}, nil
}

func (u *unigram) encode(e *encoder, piece []byte) {
	best := slices.Grow(e.cuts[:0], len(piece)+1)[:len(piece)+1]
	e.cuts = best
	for i := range best {
		best[i] = cut{id: noID}
	}
	for at := 0; at < len(piece); {
		_, size := utf8.DecodeRune(piece[at:])
		here, single := best[at].score, false
		u.words.prefixes(piece[at:], func(n int, id int32) {
			if to, score := &best[at+n], here+u.scores[id]; to.id == noID || score > to.score {
				*to = cut{score, int32(at), id}
			}
			single = single || n == size
		})
		if !single {
			if to, score := &best[at+size], here+u.unkScore; to.id == noID || score > to.score {
				*to = cut{score, int32(at), unknownID}
			}
		}
		at += size
	}
	u.trace(e, piece, best)
}

// unknownID marks a cut that no token makes; it differs from noID.
const unknownID = int32(-2)

// trace follows the cuts back from the end and writes their tokens in order.
func (u *unigram) trace(e *encoder, piece []byte, best []cut) {
	stack := e.path[:0]
	for at := int32(len(piece)); at > 0; at = best[at].from {
		stack = append(stack, at)
	}
	e.path = stack
	for i := len(stack) - 1; i >= 0; i-- {
		to := stack[i]
		c := best[to]
		if c.id >= 0 && c.id != u.unk {
			e.out = append(e.out, int(c.id))
			continue
		}
		for u.fuse && i > 0 && (best[stack[i-1]].id == unknownID || best[stack[i-1]].id == u.unk) {
			i--
			to = stack[i]
		}
		u.spell(e, piece[c.from:to])
	}
}

// spell writes what no token spells: in byte tokens where all are there.
func (u *unigram) spell(e *encoder, text []byte) {
	if id, ok := u.ids[string(text)]; ok { // two unknowns may make a token
		e.out = append(e.out, int(id))
		return
	}
	if u.bytes != nil && u.allBytes(text) {
		for _, b := range text {
			e.out = append(e.out, int(u.bytes[b]))
		}
		return
	}
	e.unknown(u.unk, text)
}

func (u *unigram) allBytes(text []byte) bool {
	return !slices.ContainsFunc(text, func(b byte) bool { return u.bytes[b] == noID })
}

// words finds all tokens that a text begins with. Its nodes are a trie in one
// array: the children of a node lie side by side, in order of their byte.
type words struct {
	nodes []wordNode
	bytes []byte // of each node, the byte that leads to it
}

type wordNode struct {
	child int32 // the first one
	n     int32 // how many
	id    int32 // of the token that ends here, or noID
}

// newWords refuses tokens beyond maxName, which would make every byte of a text
// cost as much.
func newWords(file string, ids map[string]int32) (words, error) {
	list := make([]string, 0, len(ids))
	for p, id := range ids {
		if len(p) > maxName {
			return words{}, &xerr.Unsupported{File: file, What: fmt.Sprintf("token %d", id), Found: fmt.Sprintf("%d bytes", len(p)), Want: fmt.Sprintf("at most %d", maxName)}
		}
		list = append(list, p)
	}
	slices.Sort(list)
	w := words{nodes: []wordNode{{id: noID}}, bytes: []byte{0}}
	type todo struct {
		node     int32
		from, to int // the tokens below it
		depth    int
	}
	for queue := []todo{{0, 0, len(list), 0}}; len(queue) > 0; {
		q := queue[0]
		queue = queue[1:]
		at := q.from
		if at < q.to && len(list[at]) == q.depth {
			w.nodes[q.node].id = ids[list[at]]
			at++
		}
		w.nodes[q.node].child = int32(len(w.nodes))
		for at < q.to {
			b, end := list[at][q.depth], at+1
			for end < q.to && list[end][q.depth] == b {
				end++
			}
			queue = append(queue, todo{int32(len(w.nodes)), at, end, q.depth + 1})
			w.nodes, w.bytes = append(w.nodes, wordNode{id: noID}), append(w.bytes, b)
			w.nodes[q.node].n++
			at = end
		}
	}
	return w, nil
}

// child returns the node that a byte leads to.
func (w *words) child(node int32, b byte) (int32, bool) {
	n := &w.nodes[node]
	k, ok := slices.BinarySearch(w.bytes[n.child:n.child+n.n], b)
	return n.child + int32(k), ok
}

// prefixes hands over every token that text begins with, the shortest first.
func (w *words) prefixes(text []byte, found func(n int, id int32)) {
	node, ok := int32(0), true
	for i, b := range text {
		if node, ok = w.child(node, b); !ok {
			return
		}
		if id := w.nodes[node].id; id != noID {
			found(i+1, id)
		}
	}
}
