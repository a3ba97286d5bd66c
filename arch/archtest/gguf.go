package archtest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/eigenhead/eigenhead/checkpoint"
)

// GGUF is a GGUF file before it is written.
type GGUF struct {
	KV      map[string]any // string, bool, uint32 or float32
	Tensors map[string]Tensor
	Q8      map[string]bool // tensors stored as Q8_0, of numbers below 1 in size; the others as F32
}

// LlamaGGUF returns the model of Llama as llama.cpp's converter would write it:
// other names, and rows of q and k interleaved within each head.
func LlamaGGUF(f *File, s Shape) *GGUF {
	g := &GGUF{Tensors: map[string]Tensor{}, KV: map[string]any{
		"general.architecture": "llama", "llama.block_count": uint32(s.Layers), "llama.context_length": uint32(s.Context),
		"llama.embedding_length": uint32(s.Width), "llama.feed_forward_length": uint32(s.FFN),
		"llama.attention.head_count": uint32(s.Heads), "llama.attention.head_count_kv": uint32(s.KVHeads),
		"llama.attention.key_length": uint32(s.HeadDim), "llama.attention.value_length": uint32(s.HeadDim),
		"llama.rope.dimension_count": uint32(s.HeadDim), "llama.attention.layer_norm_rms_epsilon": float32(1e-5),
	}}
	names := strings.NewReplacer("model.embed_tokens", "token_embd", "model.norm", "output_norm", "lm_head", "output",
		"model.layers.", "blk.", "input_layernorm", "attn_norm", "post_attention_layernorm", "ffn_norm",
		"self_attn.q_proj", "attn_q", "self_attn.k_proj", "attn_k", "self_attn.v_proj", "attn_v", "self_attn.o_proj", "attn_output",
		"mlp.gate_proj", "ffn_gate", "mlp.up_proj", "ffn_up", "mlp.down_proj", "ffn_down")
	for name, t := range f.Tensors {
		switch {
		case strings.Contains(name, "q_proj"):
			t = interleave(t, s.Heads)
		case strings.Contains(name, "k_proj"):
			t = interleave(t, s.KVHeads)
		}
		g.Tensors[names.Replace(name)] = t
	}
	return g
}

// interleave is permute of convert_hf_to_gguf.py:
// reshape(heads, 2, d/2, cols), swap the middle axes.
func interleave(t Tensor, heads int) Tensor {
	cols := len(t.Data) / t.Shape[0]
	d := t.Shape[0] / heads
	out := Tensor{Shape: t.Shape, Data: make([]float32, 0, len(t.Data))}
	for h := range heads {
		for j := range d / 2 {
			for half := range 2 {
				row := h*d + half*d/2 + j
				out.Data = append(out.Data, t.Data[row*cols:(row+1)*cols]...)
			}
		}
	}
	return out
}

// Open writes the file in memory and opens it.
func (g *GGUF) Open() (*checkpoint.Checkpoint, error) {
	return checkpoint.OpenFS(fstest.MapFS{"model.gguf": {Data: g.Bytes()}}, ".")
}

// Bytes returns the file, version 3.
func (g *GGUF) Bytes() []byte {
	le := binary.LittleEndian
	text := func(b []byte, s string) []byte { return append(le.AppendUint64(b, uint64(len(s))), s...) }
	b := le.AppendUint32([]byte("GGUF"), 3)
	b = le.AppendUint64(b, uint64(len(g.Tensors)))
	b = le.AppendUint64(b, uint64(len(g.KV)))
	for _, key := range slices.Sorted(maps.Keys(g.KV)) {
		b = text(b, key)
		switch v := g.KV[key].(type) {
		case uint32:
			b = le.AppendUint32(le.AppendUint32(b, 4), v)
		case float32:
			b = le.AppendUint32(le.AppendUint32(b, 6), math.Float32bits(v))
		case bool:
			b = append(le.AppendUint32(b, 7), map[bool]byte{true: 1}[v])
		case string:
			b = text(le.AppendUint32(b, 8), v)
		default:
			panic(fmt.Sprintf("archtest: key %s of type %T", key, v))
		}
	}
	var data []byte
	for _, name := range slices.Sorted(maps.Keys(g.Tensors)) {
		t := g.Tensors[name]
		b = le.AppendUint32(text(b, name), uint32(len(t.Shape)))
		for _, n := range slices.Backward(t.Shape) {
			b = le.AppendUint64(b, uint64(n))
		}
		id := uint32(0)
		if g.Q8[name] {
			id = 8
		}
		b = le.AppendUint64(le.AppendUint32(b, id), uint64(len(data)))
		if g.Q8[name] {
			data = pad(appendQ8(data, t.Data))
			continue
		}
		for _, v := range t.Data {
			data = le.AppendUint32(data, math.Float32bits(v))
		}
		data = pad(data)
	}
	return append(pad(b), data...)
}

// appendQ8 appends blocks of Q8_0 of steps of 1/128, and a NaN as the step of a block
// that has one.
func appendQ8(b []byte, x []float32) []byte {
	const step, nan = 0x2000, 0x7e00
	for block := range slices.Chunk(x, 32) {
		scale := uint16(step)
		if slices.ContainsFunc(block, func(v float32) bool { return v != v }) {
			scale = nan
		}
		b = binary.LittleEndian.AppendUint16(b, scale)
		for _, v := range block {
			b = append(b, byte(int8(max(-127, min(127, math.Round(float64(v)*128))))))
		}
	}
	return b
}

func pad(b []byte) []byte {
	for len(b)%32 != 0 {
		b = append(b, 0)
	}
	return b
}
