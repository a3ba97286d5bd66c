package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

// TestPieces has pieces worked out by hand from the expressions.
func TestPieces(t *testing.T) {
	for _, c := range []struct {
		name   string
		stages []stage
		text   string
		want   string // pieces, with | between them
	}{
		{"gpt-2", gpt2Stages, "I'll  see 12 things!\n\n x", "I|'ll| | see| 12| things|!|\n\n| x"},
		{"gpt-2", gpt2Stages, "'LL 'llama  ", "'|LL| '|llama|  "},
		{"gpt-2", gpt2Stages, "a \u00a0b\u3000", "a| |\u00a0|b|\u3000"},
		{"gpt-2", gpt2Stages, "'", "'"},
		{"gpt-2", gpt2Stages, "'r're", "'|r|'re"},
		{"digits", digitsStages, "in 2024½", "in| |2|0|2|4|½"},
		{"llama3", llama3Stages, "I'LL pay 12345 (now)!\r\n\n  x", "I|'LL| pay| |123|45| (|now|)!\r\n\n| | x"},
		{"llama3", llama3Stages, "'ſx \t\n\t y", "'ſ|x| \t\n|\t| y"},
		{"llama3", llama3Stages, "\tx\u00a0y\n", "\tx|\u00a0y|\n"},
		{"qwen2", qwen2Stages, "12", "1|2"},
		{"default", defaultStages, "x=12345 (y)", "x|=|123|45| |(|y|)"},
		{"meta", []stage{splits(metaPiece)}, "a▁▁b▁", "a|▁|▁b|▁"},
		{"meta runs", []stage{splits(metaRunPiece)}, "a▁▁b▁", "a|▁▁b|▁"},
	} {
		var got []string
		splitAll(c.stages, []byte(c.text), true, func(p []byte) { got = append(got, string(p)) })
		if want := strings.Split(c.want, "|"); !slices.Equal(got, want) {
			t.Errorf("%s, %q:\n got %q\nwant %q", c.name, c.text, got, want)
		}
	}
}

// TestMergeTwice: where a file lists one pair twice, each form follows its own
// reference. The second place of "a b" loses to "b a", the first wins.
func TestMergeTwice(t *testing.T) {
	tokens := []string{"a", "b", "ab", "ba"}
	merges := []string{"a b", "b a", "a b"}
	kv := bytesKV.with(keyTokens, tokens).without(keyTypes).with(keyMerges, merges).with(keyBOS, uint64(0))
	gguf, err := FromGGUF(kv)
	if err != nil {
		t.Fatal(err)
	}
	if got := gguf.Encode([]byte("bab"), false); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("GGUF: %v, want [1 2]: the first place counts", got)
	}
	json, err := FromJSON("t", []byte(`{"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},
	"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"ba":3},"merges":["a b","b a","a b"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := json.Encode([]byte("bab"), false); !slices.Equal(got, []int{3, 1}) {
		t.Errorf("tokenizer.json: %v, want [3 1]: the last place counts", got)
	}
}
