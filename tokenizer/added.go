package tokenizer

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// addedToken is a token that is found in the text before anything else.
type addedToken struct {
	id      int32
	special bool // found only on request
	lstrip  bool // takes the white space before it
	rstrip  bool // takes the white space after it
	word    bool // only where no letter, digit or underscore touches it
}

// added holds the added tokens: those of the text as it is, then those of the
// normalized text between them.
type added struct {
	raw        trie
	normalized trie
}

// trie finds the longest of many names at a position. Node 0 is the root.
// Children are lists, so that a name costs 16 bytes for each of its own,
// whatever the file holds.
type trie struct {
	nodes  []trieNode
	tokens []addedToken
	first  [256]bool // bytes that a name begins with
}

type trieNode struct {
	b       byte
	child   int32 // first child, 0: none
	sibling int32 // next child of the parent, 0: none
	token   int32 // index into tokens, -1: no name ends here
}

// find returns the child of a node, or 0.
func (t *trie) find(at int32, b byte) int32 {
	for to := t.nodes[at].child; to != 0; to = t.nodes[to].sibling {
		if t.nodes[to].b == b {
			return to
		}
	}
	return 0
}

// maxName bounds the bytes of a name: looking for names costs at most that
// much for each byte of a text. Real names have a few dozen.
const maxName = 1024

// insert adds a name; a later one of the same spelling replaces it.
func (t *trie) insert(file, name string, token addedToken) error {
	if name == "" {
		return nil
	}
	if len(name) > maxName {
		return &xerr.Unsupported{File: file, What: fmt.Sprintf("added token %.20q…", name), Found: fmt.Sprintf("%d bytes", len(name)),
			Want: fmt.Sprintf("at most %d", maxName)}
	}
	if len(t.nodes) == 0 {
		t.nodes = append(t.nodes, trieNode{token: -1})
	}
	t.first[name[0]] = true
	at := int32(0)
	for i := range len(name) {
		to := t.find(at, name[i])
		if to == 0 {
			to = int32(len(t.nodes))
			t.nodes = append(t.nodes, trieNode{b: name[i], sibling: t.nodes[at].child, token: -1})
			t.nodes[at].child = to
		}
		at = to
	}
	t.nodes[at].token = int32(len(t.tokens))
	t.tokens = append(t.tokens, token)
	return nil
}

// longest returns the longest name that text begins with.
func (t *trie) longest(text []byte) (token *addedToken, n int) {
	at := int32(0)
	for i, b := range text {
		if at = t.find(at, b); at == 0 {
			break
		}
		if k := t.nodes[at].token; k >= 0 {
			token, n = &t.tokens[k], i+1
		}
	}
	return token, n
}

// each hands the parts of text to emit, in order: an added token with its id,
// or a stretch of other text, never empty, with noID.
// Source: tokenizers, AddedVocabulary::find_matches.
func (t *trie) each(text []byte, special bool, emit func(id int32, from, to int)) {
	done := 0
	for i := 0; i < len(text) && len(t.nodes) > 0; {
		if !t.first[text[i]] {
			i++
			continue
		}
		token, n := t.longest(text[i:])
		if n == 0 {
			i++
			continue
		}
		from, to := i, i+n
		i = to
		if token.special && !special || token.word && !alone(text, from, to) {
			continue
		}
		if token.lstrip {
			from = done + trimRight(text[done:from])
		}
		if token.rstrip {
			to += run(text[to:], space)
		}
		if from > done {
			emit(noID, done, from)
		}
		emit(token.id, from, to)
		done, i = to, to
	}
	if done < len(text) {
		emit(noID, done, len(text))
	}
}

// trimRight returns the length of text without the white space at its end.
func trimRight(text []byte) int {
	n := len(text)
	for n > 0 {
		r, size := utf8.DecodeLastRune(text[:n])
		if !unicode.IsSpace(r) {
			break
		}
		n -= size
	}
	return n
}

// alone reports whether no word character touches text[from:to].
func alone(text []byte, from, to int) bool {
	before, _ := utf8.DecodeLastRune(text[:from])
	after, _ := utf8.DecodeRune(text[to:])
	return (from == 0 || !wordRune(before)) && (to == len(text) || !wordRune(after))
}

// wordRune is \w as Unicode defines it (UTS 18): a number such as ½ is not in it.
func wordRune(r rune) bool {
	return isLetter(r) || unicode.In(r, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control) ||
		r >= 0x897 && unicode.In(r, marks16, numbers16)
}
