package tokenizer

import (
	"fmt"

	"golang.org/x/text/unicode/norm"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// KV is what FromGGUF needs of a GGUF's metadata; *checkpoint.KV is one.
type KV interface {
	Has(key string) bool
	String(key string) (string, error)
	Strings(key string) ([]string, error)
	Ints(key string) ([]int64, error)
	Floats(key string) ([]float64, error)
	Bool(key string) (bool, error)
	Uint(key string) (uint64, error)
}

// The keys of a vocabulary in a GGUF.
const (
	keyArch   = "general.architecture"
	keyModel  = "tokenizer.ggml.model"
	keyPre    = "tokenizer.ggml.pre"
	keyTokens = "tokenizer.ggml.tokens"
	keyScores = "tokenizer.ggml.scores"
	keyTypes  = "tokenizer.ggml.token_type"
	keyMerges = "tokenizer.ggml.merges"
	keyBOS    = "tokenizer.ggml.bos_token_id"
	keyUnk    = "tokenizer.ggml.unknown_token_id"
	keyAddBOS = "tokenizer.ggml.add_bos_token"
	keyEOS    = "tokenizer.ggml.eos_token_id"
	keyAddEOS = "tokenizer.ggml.add_eos_token"
	keySep    = "tokenizer.ggml.seperator_token_id" // so spelled
	keyAddSep = "tokenizer.ggml.add_sep_token"
	keyMap    = "tokenizer.ggml.precompiled_charsmap"
	keyMerge  = "tokenizer.ggml.remove_extra_whitespaces"
	keyLower  = "tokenizer.ggml.normalizer.lowercase"
	keyAccent = "tokenizer.ggml.normalizer.strip_accents"
	keySpace  = "tokenizer.ggml.add_space_prefix"
)

// ggufFile stands for the file in errors: the caller knows its name and wraps.
const ggufFile = "gguf metadata"

func ggufKey(key string) string { return fmt.Sprintf("%s: key %q", ggufFile, key) }

// FromGGUF reads the vocabulary of a GGUF: tokenizer.ggml.model "gpt2"
// (byte-level BPE, with a splitter that tokenizer.ggml.pre names), "llama"
// (SentencePiece BPE), "t5" (SentencePiece Unigram) or "bert" (WordPiece). Ids
// are those of llama.cpp, except where it approximates the model's own
// tokenizer: the splitters of GPT-4o and Tekken, and BERT's character classes,
// are the original ones. Errors name the key but not the file, which a KV does
// not know.
//
// A file without tokenizer.ggml.pre takes the splitter of its architecture's
// original tokenizer if that has only one (see Defaults), and is refused
// otherwise; llama.cpp warns and takes a splitter that no such model was
// trained with.
func FromGGUF(kv KV) (*Tokenizer, error) {
	name, err := kv.String(keyModel)
	if err != nil {
		return nil, err
	}
	read, ok := ggufModels[name]
	if !ok {
		return nil, &xerr.Unsupported{File: ggufKey(keyModel), What: "kind of vocabulary", Found: fmt.Sprintf("%q", name),
			Want: `"gpt2" (byte-level BPE), "llama" (SentencePiece BPE), "t5" (Unigram) or "bert" (WordPiece)`, Hint: "pass ids instead of text"}
	}
	t, err := ggufVocab(kv)
	if err != nil {
		return nil, err
	}
	ends, err := read(t, kv)
	if err != nil {
		return nil, err
	}
	if err := t.addByKind(ggufKey(keyTokens)); err != nil {
		return nil, err
	}
	if err := t.ggufBOS(kv, name, ends.bos); err != nil {
		return nil, err
	}
	return t, t.ggufEnd(kv, ends)
}

// ggufEnds says what goes in front and behind where a file does not.
type ggufEnds struct{ bos, eos, sep bool }

var ggufModels = map[string]func(*Tokenizer, KV) (ggufEnds, error){
	"gpt2": (*Tokenizer).ggufBytes,
	"llama": func(t *Tokenizer, kv KV) (ggufEnds, error) {
		return ggufEnds{bos: true}, t.ggufSentencePiece(kv)
	},
	"t5": func(t *Tokenizer, kv KV) (ggufEnds, error) {
		return ggufEnds{eos: true}, t.ggufUnigram(kv)
	},
	"bert": func(t *Tokenizer, kv KV) (ggufEnds, error) {
		return ggufEnds{bos: true, sep: true}, t.ggufWordPiece(kv)
	},
}

// ggufVocab reads tokens and their types.
func ggufVocab(kv KV) (*Tokenizer, error) {
	pieces, err := kv.Strings(keyTokens)
	if err != nil {
		return nil, err
	}
	kinds := make([]tokenKind, len(pieces))
	if kv.Has(keyTypes) {
		types, err := kv.Ints(keyTypes)
		if err != nil {
			return nil, err
		}
		if len(types) != len(pieces) {
			return nil, &xerr.Format{File: ggufKey(keyTypes), What: "length", Found: len(types),
				Want: fmt.Sprintf("%d, that of %s", len(pieces), keyTokens)}
		}
		for i, n := range types {
			kinds[i] = ggufKind(n, pieces[i])
		}
	}
	return newVocab(ggufKey(keyTokens), pieces, kinds)
}

// ggufKind reads a token type. Tokens that end a text or a turn are control
// tokens even in files that call them something else, as in llama.cpp.
func ggufKind(n int64, piece string) tokenKind {
	if endNames[piece] {
		return controlToken
	}
	switch n {
	case 2:
		return unknownToken
	case 3:
		return controlToken
	case 4:
		return userToken
	case 6:
		return byteToken
	}
	return normalToken
}

var endNames = map[string]bool{
	"<|eot_id|>": true, "<|im_end|>": true, "<|end|>": true, "<end_of_turn>": true, "<|endoftext|>": true,
	"</s>": true, "<|eom_id|>": true, "<EOT>": true, "_<EOT>": true, "<|end_of_text|>": true,
}

// ggufBytes sets up byte-level BPE; the splitter's name says what goes in front
// and behind by default.
func (t *Tokenizer) ggufBytes(kv KV) (ends ggufEnds, err error) {
	pre, err := t.ggufPre(kv)
	if err != nil {
		return ends, err
	}
	s, ok := ggufSplitters[pre]
	if !ok {
		return ends, &xerr.Unsupported{File: ggufKey(keyPre), What: "splitter", Found: fmt.Sprintf("%q", pre),
			Want: "one of " + splitterNames(), Hint: "pass ids instead of text"}
	}
	lines, err := kv.Strings(keyMerges)
	if err != nil {
		return ends, err
	}
	merges := mergeList{file: ggufKey(keyMerges), ids: t.ids, out: make(ranks, len(lines))}
	for i, line := range lines {
		if err := merges.addLine(i, line); err != nil {
			return ends, err
		}
	}
	t.kind = "byte-level BPE (" + pre + ")"
	t.split = s.stages
	t.decode(fromAlphabet)
	m := &byteBPE{bytes: alphabetTokens(t.ids), ranks: merges.out, unk: noID}
	if s.whole {
		m.whole = t.whole()
	}
	t.model = m
	return ggufEnds{bos: s.bos, sep: s.sep}, nil
}

// whole returns the tokens by the text that they stand for.
func (t *Tokenizer) whole() map[string]int32 {
	out := make(map[string]int32, len(t.pieces))
	for i, s := range t.decoded {
		if t.kinds[i] == normalToken && s != "" {
			out[s] = int32(i)
		}
	}
	return out
}

// ggufPre returns the name of the splitter.
func (t *Tokenizer) ggufPre(kv KV) (string, error) {
	if kv.Has(keyPre) {
		return kv.String(keyPre)
	}
	arch, err := kv.String(keyArch)
	if err != nil {
		return "", err
	}
	switch arch {
	case "gptneox":
		t.norm = normalizer{form(norm.NFC, false)}
		t.defaults = append(t.defaults, "tokenizer.ggml.pre is missing: splitter gpt-2 after NFC, as the GPT-NeoX-20B tokenizer has it")
		return "gpt-2", nil
	case "gpt2":
		t.defaults = append(t.defaults, "tokenizer.ggml.pre is missing: splitter gpt-2, as the GPT-2 tokenizer has it")
		return "gpt-2", nil
	}
	return "", &xerr.Format{File: ggufKey(keyPre), What: "missing", Want: "the name of a splitter, such as \"gpt-2\"",
		Hint: "the file was written by an old converter: convert the model again, or pass ids instead of text"}
}

// ggufSentencePiece sets up SentencePiece BPE.
func (t *Tokenizer) ggufSentencePiece(kv KV) error {
	scores, err := t.ggufScores(kv)
	if err != nil {
		return err
	}
	prefix := true
	if kv.Has(keySpace) {
		if prefix, err = kv.Bool(keySpace); err != nil {
			return err
		}
	} else {
		t.defaults = append(t.defaults, keySpace+" is missing: true, as in llama.cpp")
	}
	if !kv.Has(keyTypes) {
		for i, p := range t.pieces {
			if _, ok := spelledByte(p); ok {
				t.kinds[i] = byteToken
			}
		}
	}
	unk, err := t.ggufUnk(kv)
	if err != nil {
		return err
	}
	return t.sentencePiece(ggufKey(keyScores), scores, meta, prefix, unk)
}

// ggufUnk returns the unknown token, noID if there is none.
func (t *Tokenizer) ggufUnk(kv KV) (int32, error) {
	if kv.Has(keyUnk) {
		return t.ggufID(kv, keyUnk)
	}
	for i, k := range t.kinds {
		if k == unknownToken {
			return int32(i), nil
		}
	}
	return noID, nil
}

// addByKind makes user-defined tokens found always, and control and unknown
// tokens on request.
func (t *Tokenizer) addByKind(file string) error {
	for i, k := range t.kinds {
		if k == userToken || k == controlToken || k == unknownToken {
			if err := t.added.raw.insert(file, t.pieces[i], addedToken{id: int32(i), special: k != userToken}); err != nil {
				return err
			}
		}
	}
	return nil
}

// ggufID reads a key that holds an id.
func (t *Tokenizer) ggufID(kv KV, key string) (int32, error) {
	id, err := kv.Uint(key)
	if err != nil {
		return 0, err
	}
	if id >= uint64(len(t.pieces)) {
		return 0, &xerr.Format{File: ggufKey(key), What: "id", Found: id, Want: fmt.Sprintf("below %d, the size of the vocabulary", len(t.pieces))}
	}
	return int32(id), nil
}
