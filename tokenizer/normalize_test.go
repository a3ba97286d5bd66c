package tokenizer

import (
	"testing"

	"golang.org/x/text/unicode/norm"
)

// TestNormalizers has the kinds of text in which generated strings once showed a
// difference to the tokenizers library, and one case for each rule.
func TestNormalizers(t *testing.T) {
	bert := bertNormalizer(true, true, true, true)
	for _, c := range []struct {
		name  string
		steps normalizer
		text  string
		want  string
	}{
		{"marks younger than the library's tables keep their place", normalizer{form(norm.NFC, false)}, "ຝ\u0eba\u0eb9", "ຝ\u0eba\u0eb9"},
		{"and keep others from composing", normalizer{form(norm.NFC, false)}, "a\u0eba\u0301e\u0301", "a\u0eba\u0301é"},
		{"older marks are sorted", normalizer{form(norm.NFC, false)}, "a\u0301\u0323", "ạ\u0301"},
		{"younger compatibility characters stay", normalizer{form(norm.NFKC, true)}, "㋿ﬁ", "㋿fi"},
		{"younger controls stay", bert, "a\U0001343bb", "a\U0001343bb"},
		{"older controls go", bert, "a\u00ad\u200b\x00\ufffdb", "ab"},
		{"unassigned characters stay", bert, "\u0378", "\u0378"},
		{"white space becomes a space", bert, "a\u0085\t\u3000b", "a  b"},
		{"ideographs stand alone", bert, "a漢字b", "a 漢  字 b"},
		{"accents go", bert, "ÀÉﬁ", "aeﬁ"},
		{"the dotted capital I has two characters in lower case", normalizer{lowercase}, "İΣ\u1c89", "i\u0307σ\u1c8a"},
		{"bytes that are not UTF-8 are kept", bert, "A\xffB\xe2\x96", "a\xffb\xe2\x96"},
		{"clean-up of the web", normalizer{nmt}, "a\x01\u200b\u2581b\r", "a  b "},
		{"white space at the ends", normalizer{strip(true, true)}, "\u3000 a b\n", "a b"},
		{"replacements", normalizer{prepend(" "), replace(" ", meta)}, "a b", "▁a▁b"},
		{"nothing in front of nothing", normalizer{prepend(" ")}, "", ""},
	} {
		if got := string(c.steps.apply([]byte(c.text))); got != c.want {
			t.Errorf("%s: %q becomes %q, want %q", c.name, c.text, got, c.want)
		}
	}
	if (normalizer{nmt}).keepsFront([]byte("\x01a")) || !(normalizer{nmt}).keepsFront([]byte("a")) || !(normalizer(nil)).keepsFront(nil) {
		t.Error("what is taken away in front is not noticed, or what is not is")
	}
}
