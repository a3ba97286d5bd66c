package checkpoint

import (
	"strings"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// packing is one way to pack weights.
type packing struct {
	part string // of the name of a tensor that comes with it
	what string
}

// packings are ways to store weights in safetensors as integers or scaled
// numbers, told by the names of the tensors that come with them. The tensors
// alone, read as numbers, would be wrong without a sign of it.
// Source: transformers, quantizers; compressed-tensors; bitsandbytes, QuantState.
var packings = []*packing{
	{".g_idx", "GPTQ"},
	{".qweight", "AWQ or GPTQ"},
	{".quant_state.bitsandbytes__", "bitsandbytes"},
	{".absmax", "bitsandbytes"},
	{".SCB", "bitsandbytes (LLM.int8)"},
	{".weight_packed", "compressed-tensors"},
	{".weight_scale", "scaled weights (FP8 or INT8)"},
	{".weight._data", "quanto"},
	{".W_q", "HQQ"},
}

// refusePacked refuses a safetensors model whose weights are packed, by the
// name of the packing.
func (c *Checkpoint) refusePacked() error {
	names := c.Names()
	for _, p := range packings {
		for _, name := range names {
			if i := strings.Index(name, p.part); i >= 0 && p.ends(name[i+len(p.part):]) {
				return packed(c.tensors[name], "weights packed by "+p.what)
			}
		}
	}
	scaled, byScale := "", ""
	for _, name := range names {
		if strings.HasPrefix(string(c.tensors[name].Type), "F8_") && c.tensors[name].Elements() > 0 {
			scaled = name
		}
		if strings.Contains(name[strings.LastIndexByte(name, '.')+1:], "scale") && !strings.HasSuffix(name, "_scales") { // MXFP4's: see Scaled
			byScale = name
		}
	}
	if scaled != "" && byScale != "" {
		return packed(c.tensors[byScale], "a scale beside "+string(c.tensors[scaled].Type)+" weights")
	}
	return nil
}

func packed(t *Tensor, found string) error {
	return &xerr.Unsupported{File: t.where(), What: "packing", Found: found, Want: "weights that are numbers as they stand",
		Hint: "save the model in bfloat16 or float16 first, or use a GGUF of it"}
}

// ends reports whether what follows the part of a name fits: nothing or, where
// the part is the beginning of a family of names, anything.
func (p *packing) ends(rest string) bool {
	return rest == "" || strings.HasSuffix(p.part, "__") || strings.HasPrefix(rest, "_")
}
