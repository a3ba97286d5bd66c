// Package archtest builds small random checkpoints in memory, for the tests of
// arch and of what stands on it. Tests change a key or a tensor and see what
// becomes of it. It knows the names of tensors and nothing of arithmetic.
package archtest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing/fstest"

	"github.com/eigenhead/eigenhead/checkpoint"
)

// File is a checkpoint before it is written: a configuration and tensors.
type File struct {
	Config  map[string]any
	Tensors map[string]Tensor
}

// Tensor is a float32 array, outermost dimension first.
type Tensor struct {
	Shape []int
	Data  []float32
}

// Random returns a tensor of independent normal numbers around a mean.
func Random(r *rand.Rand, mean, sd float64, shape ...int) Tensor {
	n := 1
	for _, s := range shape {
		n *= s
	}
	t := Tensor{Shape: shape, Data: make([]float32, n)}
	for i := range t.Data {
		t.Data[i] = float32(mean + sd*r.NormFloat64())
	}
	return t
}

// Shape is the size of a model to build.
type Shape struct {
	Layers, Heads, KVHeads, HeadDim, Width, FFN, Vocab, Context int
}

// Small is a shape in which no two sizes are equal.
var Small = Shape{Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 6, Width: 20, FFN: 28, Vocab: 37, Context: 64}

// Llama returns a random Llama with biases in attention, under Hugging Face's names.
func Llama(seed uint64, s Shape) *File {
	r := rand.New(rand.NewPCG(seed, 1))
	f := &File{Tensors: map[string]Tensor{}, Config: map[string]any{
		"model_type": "llama", "architectures": []string{"LlamaForCausalLM"},
		"hidden_size": s.Width, "intermediate_size": s.FFN, "num_hidden_layers": s.Layers, "num_attention_heads": s.Heads,
		"num_key_value_heads": s.KVHeads, "head_dim": s.HeadDim, "vocab_size": s.Vocab, "max_position_embeddings": s.Context,
		"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": false,
		"attention_bias": true, "mlp_bias": false,
	}}
	linear := func(name string, out, in int, bias bool) {
		f.Tensors[name+".weight"] = Random(r, 0, 1/math.Sqrt(float64(in)), out, in)
		if bias {
			f.Tensors[name+".bias"] = Random(r, 0, 0.3, out)
		}
	}
	f.Tensors["model.embed_tokens.weight"] = Random(r, 0, 1, s.Vocab, s.Width)
	f.Tensors["model.norm.weight"] = Random(r, 1, 0.2, s.Width)
	linear("lm_head", s.Vocab, s.Width, false)
	for l := range s.Layers {
		at := fmt.Sprintf("model.layers.%d.", l)
		f.Tensors[at+"input_layernorm.weight"] = Random(r, 1, 0.2, s.Width)
		f.Tensors[at+"post_attention_layernorm.weight"] = Random(r, 1, 0.2, s.Width)
		linear(at+"self_attn.q_proj", s.Heads*s.HeadDim, s.Width, true)
		linear(at+"self_attn.k_proj", s.KVHeads*s.HeadDim, s.Width, true)
		linear(at+"self_attn.v_proj", s.KVHeads*s.HeadDim, s.Width, true)
		linear(at+"self_attn.o_proj", s.Width, s.Heads*s.HeadDim, true)
		linear(at+"mlp.gate_proj", s.FFN, s.Width, false)
		linear(at+"mlp.up_proj", s.FFN, s.Width, false)
		linear(at+"mlp.down_proj", s.Width, s.FFN, false)
	}
	return f
}

// GPT2 returns a random GPT-2 under Hugging Face's names. Width is Heads·HeadDim.
func GPT2(seed uint64, s Shape) *File {
	r := rand.New(rand.NewPCG(seed, 2))
	d := s.Heads * s.HeadDim
	f := &File{Tensors: map[string]Tensor{}, Config: map[string]any{
		"model_type": "gpt2", "architectures": []string{"GPT2LMHeadModel"},
		"n_embd": d, "n_layer": s.Layers, "n_head": s.Heads, "n_positions": s.Context, "n_inner": s.FFN, "vocab_size": s.Vocab,
		"activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
	}}
	conv := func(name string, in, out int) { // stored [in, out]
		f.Tensors[name+".weight"] = Random(r, 0, 1/math.Sqrt(float64(in)), in, out)
		f.Tensors[name+".bias"] = Random(r, 0, 0.3, out)
	}
	norm := func(name string) {
		f.Tensors[name+".weight"], f.Tensors[name+".bias"] = Random(r, 1, 0.2, d), Random(r, 0, 0.3, d)
	}
	f.Tensors["transformer.wte.weight"] = Random(r, 0, 1, s.Vocab, d)
	f.Tensors["transformer.wpe.weight"] = Random(r, 0, 1, s.Context, d)
	norm("transformer.ln_f")
	for l := range s.Layers {
		at := fmt.Sprintf("transformer.h.%d.", l)
		norm(at + "ln_1")
		norm(at + "ln_2")
		conv(at+"attn.c_attn", d, 3*d)
		conv(at+"attn.c_proj", d, d)
		conv(at+"mlp.c_fc", d, s.FFN)
		conv(at+"mlp.c_proj", s.FFN, d)
	}
	return f
}

// Open writes the file as a safetensors folder in memory and opens it.
func (f *File) Open() (*checkpoint.Checkpoint, error) {
	fsys := fstest.MapFS{"model.safetensors": {Data: f.Safetensors()}}
	if f.Config != nil {
		config, err := json.Marshal(f.Config)
		if err != nil {
			return nil, err
		}
		fsys["config.json"] = &fstest.MapFile{Data: config}
	}
	return checkpoint.OpenFS(fsys, ".")
}

// Safetensors returns the tensors as a safetensors file, in order of name.
func (f *File) Safetensors() []byte {
	type entry struct {
		DType   string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	header := map[string]entry{}
	var data []byte
	for _, name := range slices.Sorted(maps.Keys(f.Tensors)) {
		t, from := f.Tensors[name], len(data)
		for _, v := range t.Data {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
		header[name] = entry{"F32", append([]int{}, t.Shape...), [2]int{from, len(data)}}
	}
	text, err := json.Marshal(header)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text, data)
}
