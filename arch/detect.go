package arch

import (
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// detect chooses the family that config.json names.
func detect(s *settings) (*family, error) {
	classes := s.words("architectures")
	kind := s.word("model_type", "a family: "+strings.Join(Families(), ", "))
	if s.err != nil {
		return nil, s.err
	}
	for _, f := range families {
		if !slices.Contains(f.ModelTypes, kind) {
			continue
		}
		for _, class := range classes {
			if !slices.Contains(f.Classes, class) {
				return nil, &xerr.Unsupported{File: s.file, What: `key "architectures"`, Found: class,
					Want: strings.Join(f.Classes, " or "), Hint: "only these models of the family are read"}
			}
		}
		return f, nil
	}
	return nil, unknownFamily(s.file, "model_type", kind)
}

// kindsOfLayer are families that are known and not supported, by the beginning of
// their names, with the reason.
var kindsOfLayer = []struct{ prefix, hint string }{
	{"deepseek", "multi-head latent attention (MLA) is not supported"},
	{"kimi", "multi-head latent attention (MLA) is not supported"},
	{"minicpm3", "multi-head latent attention (MLA) is not supported"},
	{"mamba", "state-space layers have no attention to measure"},
	{"falcon_mamba", "state-space layers have no attention to measure"},
	{"falcon_h1", "hybrids with state-space layers are not supported"},
	{"falcon-h1", "hybrids with state-space layers are not supported"},
	{"jamba", "hybrids with state-space layers are not supported"},
	{"zamba", "hybrids with state-space layers are not supported"},
	{"bamba", "hybrids with state-space layers are not supported"},
	{"nemotron_h", "hybrids with state-space layers are not supported"},
	{"granitemoehybrid", "hybrids with state-space layers are not supported"},
	{"lfm2", "hybrids with convolution layers are not supported"},
	{"qwen3_next", "hybrids with linear attention are not supported"},
	{"qwen3next", "hybrids with linear attention are not supported"},
	{"recurrent_gemma", "hybrids with recurrent layers are not supported"},
	{"rwkv", "recurrent layers have no attention to measure"},
	{"t5", "encoders with decoders are not supported"},
	{"bart", "encoders with decoders are not supported"},
}

func unknownFamily(file, key, name string) error {
	hint := "`eigenhead models` lists what can be read; a capture of q, k and v works for every family"
	for _, k := range kindsOfLayer {
		if strings.HasPrefix(name, k.prefix) {
			hint = k.hint
		}
	}
	return &xerr.Unsupported{File: file, What: "key " + quote(key), Found: quote(name),
		Want: "one of the families " + strings.Join(Families(), ", "),
		Hint: hint}
}
