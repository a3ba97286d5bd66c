package telemetry

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
)

// measure makes the sample of a value: labels run and layer, and head or kv_head
// where it belongs to one.
func (r *reading) measure(run string, v monitor.Value) sample {
	layer, index := finding.Place(v.Where)
	at := []string{run, strconv.Itoa(layer), strconv.Itoa(index)}
	labels := []string{"run", "layer", "head"}
	switch {
	case layer < 0: // of no head or layer: it keeps the name that it has
		labels, at = []string{"run", "where"}, []string{run, v.Where}
	case index < 0:
		labels, at = labels[:2], at[:2]
	case strings.Contains(v.Where, "KV"):
		labels[2] = "kv_head"
	}
	key := fmt.Sprintf("%s%v", v.Measure, labels)
	f := r.families[key]
	if f == nil {
		f = measureFamily(v.Measure, labels)
		r.families[key] = f
	}
	return f.of(v.Value, at...)
}
