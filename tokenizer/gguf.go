package tokenizer

import (
	"fmt"

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
	keySpace  = "tokenizer.ggml.add_space_prefix"
)

// ggufFile stands for the file in errors: the caller knows its name and wraps.
const ggufFile = "gguf metadata"

func ggufKey(key string) string { return fmt.Sprintf("%s: key %q", ggufFile, key) }

// FromGGUF reads the vocabulary of a GGUF: tokenizer.ggml.model "gpt2"
// (byte-level BPE, with a splitter that tokenizer.ggml.pre names) or "llama"
// (SentencePiece BPE). Ids are those of llama.cpp, which normalizes nothing.
// Errors name the key but not the file, which a KV does not know.
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
	if name != "gpt2" && name != "llama" {
		return nil, &xerr.Unsupported{File: ggufKey(keyModel), What: "kind of vocabulary", Found: fmt.Sprintf("%q", name),
			Want: `"gpt2" (byte-level BPE) or "llama" (SentencePiece BPE)`, Hint: "pass ids instead of text"}
	}
	t, err := ggufVocab(kv)
	if err != nil {
		return nil, err
	}
	byPre := false
	if name == "gpt2" {
		byPre, err = t.ggufBytes(kv)
	} else {
		err = t.ggufSentencePiece(kv)
	}
	if err != nil {
		return nil, err
	}
	if err := t.addByKind(ggufKey(keyTokens)); err != nil {
		return nil, err
	}
	if err := t.ggufBOS(kv, name, byPre); err != nil {
		return nil, err
	}
	return t, nil
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

// ggufBytes sets up byte-level BPE and says whether the splitter's name makes
// a BOS the default.
func (t *Tokenizer) ggufBytes(kv KV) (bos bool, err error) {
	pre, err := t.ggufPre(kv)
	if err != nil {
		return false, err
	}
	s, ok := ggufSplitters[pre]
	if !ok {
		return false, &xerr.Unsupported{File: ggufKey(keyPre), What: "splitter", Found: fmt.Sprintf("%q", pre),
			Want: "one of " + splitterNames(), Hint: "pass ids instead of text"}
	}
	lines, err := kv.Strings(keyMerges)
	if err != nil {
		return false, err
	}
	merges := mergeList{file: ggufKey(keyMerges), ids: t.ids, out: make(ranks, len(lines))}
	for i, line := range lines {
		if err := merges.addLine(i, line); err != nil {
			return false, err
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
	return s.bos, nil
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
		t.norm.nfc = true
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
	scores, err := kv.Floats(keyScores)
	if err != nil {
		return err
	}
	if len(scores) != len(t.pieces) {
		return &xerr.Format{File: ggufKey(keyScores), What: "length", Found: len(scores),
			Want: fmt.Sprintf("%d, that of %s", len(t.pieces), keyTokens)}
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
	unk := noID
	for i, k := range t.kinds {
		if k == unknownToken {
			unk = int32(i)
			break
		}
	}
	if kv.Has(keyUnk) {
		id, err := t.ggufID(kv, keyUnk)
		if err != nil {
			return err
		}
		unk = id
	}
	return t.sentencePiece(ggufKey(keyScores), scores, meta, prefix, unk)
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

// ggufBOS reads the settings of the token in front.
func (t *Tokenizer) ggufBOS(kv KV, model string, byPre bool) (err error) {
	switch {
	case kv.Has(keyAddBOS):
		t.bos.source = keyAddBOS
		if t.bos.add, err = kv.Bool(keyAddBOS); err != nil {
			return err
		}
	case model == "llama":
		t.bos.add, t.bos.source = true, keyAddBOS+" is missing: true for SentencePiece vocabularies, as in llama.cpp"
	default:
		t.bos.add = byPre
		t.bos.source = fmt.Sprintf("%s is missing: %v for this splitter, as in llama.cpp", keyAddBOS, byPre)
	}
	if !t.bos.add && !kv.Has(keyBOS) {
		return nil
	}
	if !kv.Has(keyBOS) && model == "llama" && len(t.pieces) > 1 {
		t.bos.id = 1
		t.defaults = append(t.defaults, keyBOS+" is missing: 1, as in llama.cpp")
		return nil
	}
	t.bos.id, err = t.ggufID(kv, keyBOS)
	return err
}
