package tokenizer

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// splitter is what tokenizer.ggml.pre stands for.
type splitter struct {
	stages []stage
	whole  bool // a piece that is a token is taken whole, before any merge
	bos    bool // a BOS goes in front if the file does not say
}

var (
	gpt2Stages    = []stage{gpt2Piece}
	digitsStages  = []stage{digitPiece, gpt2Piece}
	llama3Stages  = []stage{llama3Piece(3)}
	qwen2Stages   = []stage{llama3Piece(1)}
	defaultStages = []stage{punctuationPiece, gpt2Piece, numberRunPiece, threeDigitPiece}
)

// ggufSplitters has the values of tokenizer.ggml.pre whose splitter is known
// here; any other is refused.
// Source: llama.cpp src/llama-vocab.cpp, llama_vocab::impl::load and
// llm_tokenizer_bpe.
var ggufSplitters = map[string]splitter{
	// Not the same as leaving the key out (see FromGGUF): the file asks for
	// what llama.cpp calls the default.
	"default": {stages: defaultStages},

	"gpt-2": {stages: gpt2Stages}, "phi-2": {stages: gpt2Stages}, "olmo": {stages: gpt2Stages},
	"mpt": {stages: gpt2Stages}, "jais": {stages: gpt2Stages}, "trillion": {stages: gpt2Stages},
	"gigachat": {stages: gpt2Stages}, "exaone4": {stages: gpt2Stages}, "mellum": {stages: gpt2Stages},

	"smollm": {stages: digitsStages}, "starcoder": {stages: digitsStages}, "refact": {stages: digitsStages},
	"command-r": {stages: digitsStages}, "codeshell": {stages: digitsStages}, "exaone": {stages: digitsStages},
	"minerva-7b": {stages: digitsStages},

	"llama3":    {stages: llama3Stages, whole: true, bos: true},
	"llama-v3":  {stages: llama3Stages, whole: true, bos: true},
	"llama-bpe": {stages: llama3Stages, whole: true, bos: true},
	"falcon3":   {stages: llama3Stages, whole: true, bos: true},
	"dbrx":      {stages: llama3Stages}, "smaug-bpe": {stages: llama3Stages},

	"qwen2": {stages: qwen2Stages}, "deepseek-r1-qwen": {stages: qwen2Stages},
	"megrez": {stages: qwen2Stages}, "stablelm2": {stages: qwen2Stages}, "hunyuan": {stages: qwen2Stages},
}

// splitterNames lists the values of tokenizer.ggml.pre that are known here.
func splitterNames() string {
	return strings.Join(slices.Sorted(maps.Keys(ggufSplitters)), ", ")
}

// punctuationPiece isolates runs of [\p{P}\$\+<=>\^~\|].
func punctuationPiece(text []byte) int {
	return alternate(text, func(r rune) bool { return unicode.IsPunct(r) || strings.ContainsRune("$+<=>^~|", r) })
}

// numberRunPiece isolates \p{N}+.
func numberRunPiece(text []byte) int { return alternate(text, isNumber) }

// alternate returns the length of the prefix of characters that agree with the
// first one on in.
func alternate(text []byte, in func(rune) bool) int {
	r, n := utf8.DecodeRune(text)
	first := in(r)
	for n < len(text) {
		r, size := utf8.DecodeRune(text[n:])
		if in(r) != first {
			break
		}
		n += size
	}
	return n
}

// threeDigitPiece isolates [0-9][0-9][0-9].
func threeDigitPiece(text []byte) int {
	digit := func(i int) bool { return i < len(text) && text[i] >= '0' && text[i] <= '9' }
	for i := range text {
		if digit(i) && digit(i+1) && digit(i+2) {
			if i == 0 {
				return 3
			}
			return i
		}
	}
	return len(text)
}
