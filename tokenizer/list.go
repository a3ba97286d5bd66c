package tokenizer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// FromVocabList reads a vocab.json that is a list of characters: each is the
// token of its place. Other characters have no token (see EncodeStrict).
func FromVocabList(file string, data []byte) (*Tokenizer, error) {
	var pieces []string
	if err := unmarshal(file, data, &pieces); err != nil {
		return nil, err
	}
	for i, p := range pieces {
		if utf8.RuneCountInString(p) != 1 {
			return nil, &xerr.Unsupported{File: file, What: fmt.Sprintf("token %d", i), Found: fmt.Sprintf("%q", p), Want: "one character"}
		}
	}
	t, err := newVocab(file, pieces, make([]tokenKind, len(pieces)))
	if err != nil {
		return nil, err
	}
	t.decode(func(p string) string { return p })
	t.kind = "characters"
	t.model = &charBPE{ids: t.ids, ranks: ranks{}, unk: noID}
	t.bos.source = file + " has no such setting"
	return t, nil
}

// FromMerges reads the pair vocab.json (token → id) and merges.txt of GPT-2
// and its relatives: byte-level BPE with GPT-2's splitter and no BOS, which is
// what the pair means where no tokenizer.json says otherwise.
func FromMerges(file string, vocab []byte, mergesFile string, merges []byte) (*Tokenizer, error) {
	var ids map[string]int64
	if err := unmarshal(file, vocab, &ids); err != nil {
		return nil, err
	}
	t, err := vocabByID(file, ids)
	if err != nil {
		return nil, err
	}
	list := mergeList{file: mergesFile, ids: t.ids, last: true, out: ranks{}}
	lines := strings.Split(string(merges), "\n")
	for i, line := range lines {
		line = strings.TrimSuffix(line, "\r")
		if line == "" || i == 0 && strings.HasPrefix(line, "#version") {
			continue
		}
		if err := list.addLine(i, line); err != nil {
			return nil, err
		}
	}
	if id, ok := t.ids["<|endoftext|>"]; ok {
		t.kinds[id] = controlToken
		if err := t.addByKind(file); err != nil {
			return nil, err
		}
	}
	t.kind = "byte-level BPE (gpt-2)"
	t.split = gpt2Stages
	t.decode(fromAlphabet)
	t.model = &byteBPE{bytes: alphabetTokens(t.ids), ranks: list.out, unk: noID}
	t.bos.source = "default of GPT-2 (vocab.json and merges.txt do not say)"
	t.defaults = append(t.defaults, "splitter gpt-2: "+file+" and "+mergesFile+" do not say")
	return t, nil
}

// FromLlama2C reads the tokenizer.bin of llama2.c: the length of the longest
// token (int32), then for each token its score (float32), length (int32) and
// bytes. It is SentencePiece BPE with a space and the token 1 in front, always.
// Source: karpathy/llama2.c, run.c.
func FromLlama2C(file string, data []byte) (*Tokenizer, error) {
	if len(data) < 4 {
		return nil, &xerr.Format{File: file, What: "length", Found: len(data), Want: "a llama2.c vocabulary"}
	}
	longest := binary.LittleEndian.Uint32(data)
	var pieces []string
	var scores []float64
	for at := 4; at < len(data); {
		if len(data)-at < 8 {
			return nil, &xerr.Format{File: file, What: fmt.Sprintf("token %d", len(pieces)), Found: "cut short", Want: "score and length"}
		}
		score := math.Float32frombits(binary.LittleEndian.Uint32(data[at:]))
		n := binary.LittleEndian.Uint32(data[at+4:])
		at += 8
		if n > longest || int64(n) > int64(len(data)-at) {
			return nil, &xerr.Format{File: file, What: fmt.Sprintf("token %d: length", len(pieces)), Found: n,
				Want: fmt.Sprintf("at most %d, the stated maximum, and %d, what is left of the file", longest, len(data)-at)}
		}
		pieces = append(pieces, strings.Trim(string(data[at:at+int(n)]), "\n"))
		if pieces[len(pieces)-1] == "" { // the token is a line end itself
			pieces[len(pieces)-1] = string(data[at : at+int(n)])
		}
		scores = append(scores, float64(score))
		at += int(n)
	}
	return fromScores(file, pieces, scores, " ", "llama2.c puts token 1 in front of every text")
}

// FromSentencePieceListing reads the .vocab file that SentencePiece writes
// beside its model: a line for each token, with a tab and its score. Settings
// are SentencePiece's own defaults, with a BOS as the Llama family has it.
func FromSentencePieceListing(file string, data []byte) (*Tokenizer, error) {
	var pieces []string
	var scores []float64
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		line := lines.Text()
		tab := strings.LastIndexByte(line, '\t')
		if tab < 0 {
			return nil, &xerr.Format{File: file, What: fmt.Sprintf("line %d", len(pieces)+1), Found: "no tab", Want: "token, tab, score"}
		}
		score, err := strconv.ParseFloat(line[tab+1:], 32)
		if err != nil {
			return nil, &xerr.Format{File: file, What: fmt.Sprintf("line %d: score", len(pieces)+1), Found: fmt.Sprintf("%q", line[tab+1:]), Want: "a number"}
		}
		pieces = append(pieces, line[:tab])
		scores = append(scores, score)
	}
	if err := lines.Err(); err != nil {
		return nil, &xerr.Format{File: file, What: fmt.Sprintf("line %d", len(pieces)+1), Found: err.Error(), Want: "token, tab, score"}
	}
	return fromScores(file, pieces, scores, meta, file+" does not say: true, as in the Llama family")
}

// fromScores makes a SentencePiece vocabulary of a file that has no more than
// tokens and scores: the first three tokens are unknown, BOS and EOS.
func fromScores(file string, pieces []string, scores []float64, space, source string) (*Tokenizer, error) {
	kinds := make([]tokenKind, len(pieces))
	for i, p := range pieces {
		if _, ok := spelledByte(p); ok {
			kinds[i] = byteToken
		}
	}
	for i, name := range []string{"<unk>", "<s>", "</s>"} {
		if i >= len(pieces) || pieces[i] != name {
			return nil, &xerr.Unsupported{File: file, What: fmt.Sprintf("token %d", i), Found: fmt.Sprintf("%q", at(pieces, i)), Want: fmt.Sprintf("%q", name)}
		}
		kinds[i] = controlToken
	}
	kinds[0] = unknownToken
	t, err := newVocab(file, pieces, kinds)
	if err != nil {
		return nil, err
	}
	if err := t.sentencePiece(file, scores, space, true, 0); err != nil {
		return nil, err
	}
	if err := t.addByKind(file); err != nil {
		return nil, err
	}
	t.bos = bos{id: 1, add: true, source: source}
	t.defaults = append(t.defaults, "space in front of the text: "+file+" does not say: true, as in the Llama family")
	return t, nil
}

func at(pieces []string, i int) string {
	if i < len(pieces) {
		return pieces[i]
	}
	return ""
}
