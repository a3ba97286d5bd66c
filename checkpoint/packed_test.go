package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// bytesOf builds a safetensors file of tensors of one byte each: name, type.
func bytesOf(pairs ...string) []byte {
	header := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		header[pairs[i]] = map[string]any{"dtype": pairs[i+1], "shape": []int{1}, "data_offsets": []int{i / 2, i/2 + 1}}
	}
	h, _ := json.Marshal(header)
	b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(h))), h...)
	for range len(pairs) / 2 {
		b = append(b, 0x38) // 1 in E4M3, 0.5 in E5M2
	}
	return b
}

func TestPacked(t *testing.T) {
	for _, in := range []struct {
		name  string
		pairs []string
		want  string
	}{
		{"FP8 alone", []string{"a.weight", "F8_E4M3", "b.weight", "F8_E5M2"}, ""},
		{"bytes for something else", []string{"a.mask", "U8", "logit_scale", "U8"}, ""},
		{"MXFP4", []string{"experts.gate_up_proj_blocks", "U8", "experts.gate_up_proj_scales", "U8"}, ""},
		{"FP8, a scale for each tensor", []string{"a.weight", "F8_E4M3", "a.weight_scale", "U8"}, "scaled weights (FP8"},
		{"FP8, DeepSeek's blocks", []string{"a.weight", "F8_E4M3", "a.weight_scale_inv", "U8"}, "scaled weights (FP8"},
		{"FP8, other names", []string{"a.weight", "F8_E4M3", "a.scale_weight", "U8"}, "a scale beside F8_E4M3"},
		{"INT8", []string{"a.weight", "I8", "a.weight_scale", "U8"}, "INT8"},
		{"GPTQ", []string{"a.qweight", "U8", "a.qzeros", "U8", "a.scales", "U8", "a.g_idx", "U8"}, "GPTQ"},
		{"AWQ", []string{"a.qweight", "U8", "a.qzeros", "U8", "a.scales", "U8"}, "AWQ"},
		{"bitsandbytes NF4", []string{"a.weight", "U8", "a.weight.absmax", "U8"}, "bitsandbytes"},
		{"bitsandbytes state", []string{"a.weight", "U8", "a.weight.quant_state.bitsandbytes__nf4", "U8"}, "bitsandbytes"},
		{"bitsandbytes INT8", []string{"a.weight", "I8", "a.SCB", "U8"}, "bitsandbytes"},
		{"compressed-tensors", []string{"a.weight_packed", "U8", "a.weight_shape", "U8"}, "compressed-tensors"},
	} {
		c, err := open("m", memory{"model.safetensors": bytesOf(in.pairs...)}, "")
		if (in.want == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), in.want) || !xerr.Input(err) || xerr.Hint(err) == "") {
			t.Errorf("%s: error %v, want one with %q", in.name, err, in.want)
		}
		if err == nil {
			readEverything(t, c)
		}
	}
	c, err := open("m", memory{"model.safetensors": bytesOf("a", "F8_E4M3", "b", "F8_E5M2")}, "")
	if err != nil {
		t.Fatal(err)
	}
	if a, b := floats(t, c, "a")[0], floats(t, c, "b")[0]; a != 1 || b != 0.5 {
		t.Errorf("byte 0x38 is %g as E4M3 and %g as E5M2, want 1 and 0.5", a, b)
	}
}
