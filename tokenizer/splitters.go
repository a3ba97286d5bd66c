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
	sep    bool // a separator goes behind if the file does not say
}

var (
	gpt2Stages    = []stage{splits(gpt2Piece)}
	digitsStages  = []stage{splits(digitPiece), splits(gpt2Piece)}
	llama3Stages  = []stage{splits(llama3Piece(3))}
	qwen2Stages   = []stage{splits(llama3Piece(1))}
	defaultStages = []stage{splits(punctuationPiece), splits(gpt2Piece), splits(numberRunPiece), splits(threeDigitPiece)}
)

// Expressions of splitters that translate takes.
const (
	bloomPattern  = ` ?[^(\s|.,!?…。，、।۔،)]+`
	deepseekLatin = `\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\x{1F7D}ᾀ-ᾴᾶ-ᾼ\x{1FBE}ῂ-ῄῆ-ῌῐ-\x{1FD3}ῖ-\x{1FDB}ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\x{2126}ℨ\x{212A}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+`
	deepseekASCII = `\s?[!-/:-~！-／：-～‘-‟\x{3000}-。]+`
	deepseekIdeo  = `[一-龥ࠀ-一가-\x{D7FF}]+`
	deepseekIdeo3 = `[一-龥\x{3040}-ゟ゠-ヿ]+`
	falconPattern = `[\p{P}\$\+<=>\^~\|` + "`]+"
	threeDigits   = `[0-9][0-9][0-9]`
)

var (
	bloomStages         = []stage{isolate(bloomPattern)}
	vikingStages        = []stage{isolate(bloomPattern), splits(digitPiece)}
	deepseekLLMStages   = []stage{isolate(`[\r\n]`), isolate(deepseekLatin), isolate(deepseekASCII), isolate(`\s+$`), isolate(deepseekIdeo), splits(numberRunPiece)}
	deepseekCoderStages = []stage{isolate(`[\r\n]`), isolate(`\s?\p{L}+`), isolate(`\s?\p{P}+`), isolate(deepseekIdeo), splits(digitPiece)}
	deepseekV3Stages    = []stage{splits(numberPiece(3)), isolate(deepseekIdeo3), splits(deepseekPiece)}
	o200kStages         = []stage{splits(o200kPiece(true, 3))}
	tekkenStages        = []stage{splits(o200kPiece(false, 1))}
	qwen35Stages        = []stage{splits(qwen35Piece)}
	falconStages        = []stage{isolate(falconPattern), splits(gpt2Piece), isolate(threeDigits)}
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
	"roberta-bpe": {stages: gpt2Stages, sep: true}, "jina-v1-en": {stages: gpt2Stages, sep: true}, "jina-v2-code": {stages: gpt2Stages, sep: true},
	"jina-es": {stages: gpt2Stages}, "jina-de": {stages: gpt2Stages}, "jina-v2-es": {stages: gpt2Stages}, "jina-v2-de": {stages: gpt2Stages},
	"a.x-4.0": {stages: gpt2Stages}, "modern-bert": {stages: gpt2Stages}, "granite-docling": {stages: gpt2Stages},
	"mpt": {stages: gpt2Stages}, "jais": {stages: gpt2Stages}, "trillion": {stages: gpt2Stages},
	"gigachat": {stages: gpt2Stages}, "exaone4": {stages: gpt2Stages}, "mellum": {stages: gpt2Stages},

	"smollm": {stages: digitsStages}, "starcoder": {stages: digitsStages}, "refact": {stages: digitsStages},
	"command-r": {stages: digitsStages}, "codeshell": {stages: digitsStages}, "exaone": {stages: digitsStages},
	"minerva-7b": {stages: digitsStages}, "mellum2": {stages: digitsStages},

	"llama3":    {stages: llama3Stages, whole: true, bos: true},
	"llama-v3":  {stages: llama3Stages, whole: true, bos: true},
	"llama-bpe": {stages: llama3Stages, whole: true, bos: true},
	"falcon3":   {stages: llama3Stages, whole: true, bos: true},
	"falcon-h1": {stages: llama3Stages, whole: true, bos: true},
	"pixtral":   {stages: llama3Stages, whole: true, bos: true},
	"midm-2.0":  {stages: llama3Stages, whole: true, bos: true},
	"lfm2":      {stages: llama3Stages, whole: true, bos: true},
	"dbrx":      {stages: llama3Stages}, "smaug-bpe": {stages: llama3Stages},
	"glm4": {stages: llama3Stages}, "chatglm-bpe": {stages: llama3Stages},

	"qwen2": {stages: qwen2Stages}, "deepseek-r1-qwen": {stages: qwen2Stages},
	"megrez": {stages: qwen2Stages}, "stablelm2": {stages: qwen2Stages}, "hunyuan": {stages: qwen2Stages},
	"kormo": {stages: qwen2Stages}, "f2llmv2": {stages: qwen2Stages}, "grok-2": {stages: qwen2Stages},
	"solar-open": {stages: qwen2Stages}, "bailingmoe": {stages: qwen2Stages}, "bailingmoe2": {stages: qwen2Stages},
	"llada-moe": {stages: qwen2Stages}, "qwen35": {stages: qwen35Stages},

	// llama.cpp cannot say \p{Lu} and takes ASCII capitals for all; these are
	// the original expressions, which the models were trained with.
	"gpt-4o": {stages: o200kStages}, "llama4": {stages: o200kStages}, "kanana2": {stages: o200kStages},
	"minimax-m2": {stages: o200kStages},
	"tekken":     {stages: tekkenStages, whole: true, bos: true},

	"deepseek-llm": {stages: deepseekLLMStages}, "deepseek-coder": {stages: deepseekCoderStages},
	"deepseek-v3": {stages: deepseekV3Stages}, "hunyuan-dense": {stages: deepseekV3Stages}, "joyai-llm": {stages: deepseekV3Stages},

	"bloom": {stages: bloomStages}, "poro-chat": {stages: bloomStages}, "gpt3-finnish": {stages: bloomStages},
	"viking": {stages: vikingStages}, "falcon": {stages: falconStages},
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
