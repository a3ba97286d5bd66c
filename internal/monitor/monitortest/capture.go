// Package monitortest makes small captures for the monitor's tests and benchmarks.
// It shares no code with package capture, whose files they must be.
package monitortest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// Shape is the size of a capture. The zero value is Small.
type Shape struct{ Layers, Heads, Tokens, Dim int }

// Small is 2 KiB of numbers: 1 layer, 2 heads, 16 tokens, 8 dimensions. Usual is
// 64 KiB: 4 layers of 4 heads, 32 tokens, 16 dimensions.
var (
	Small = Shape{1, 2, 16, 8}
	Usual = Shape{4, 4, 32, 16}
)

// Capture returns a capture file of Gaussian queries and keys. Key and shape
// determine every byte. With a non-empty poison the first query of the first head
// is that number: "NaN" or "Inf"; "big" multiplies all of them by 1000.
func Capture(key monitor.Key, shape Shape, poison string) []byte {
	if shape == (Shape{}) {
		shape = Small
	}
	type entry struct {
		DType string   `json:"dtype"`
		Shape [3]int   `json:"shape"`
		At    [2]int64 `json:"data_offsets"`
	}
	header := map[string]any{"__metadata__": map[string]string{
		"format": "eigenhead.capture/1", "scale": "0.25", "mask": "causal", "model": "toy",
		"run": key.Run, "step": strconv.FormatInt(key.Step, 10), "sample": strconv.Itoa(key.Sample)}}
	size := int64(4 * shape.Heads * shape.Tokens * shape.Dim)
	var at int64
	for l := range shape.Layers {
		for _, part := range []string{"q", "k"} {
			header[fmt.Sprintf("layers.%d.%s", l, part)] = entry{"F32", [3]int{shape.Heads, shape.Tokens, shape.Dim}, [2]int64{at, at + size}}
			at += size
		}
	}
	text, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	out := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+int64(len(text))+at), uint64(len(text)))
	out = append(out, text...)
	return appendNumbers(out, key, at/4, poison)
}

func appendNumbers(out []byte, key monitor.Key, n int64, poison string) []byte {
	r := rand.New(rand.NewPCG(uint64(key.Step), uint64(key.Sample)))
	factor := float32(1)
	if poison == "big" {
		factor = 1000
	}
	for i := range n {
		v := float32(r.NormFloat64()) * factor
		switch {
		case i == 0 && poison == "NaN":
			v = float32(math.NaN())
		case i == 0 && poison == "Inf":
			v = float32(math.Inf(1))
		}
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}
