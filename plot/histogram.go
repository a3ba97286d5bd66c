package plot

import (
	"math"
	"slices"
)

// Histogram counts values in bins of equal width.
type Histogram struct {
	Title  string
	X      string // what is counted, with its unit
	Values []float64
	Bins   int     // 0: by the rule of Freedman and Diaconis, 5 to 60
	Height float64 // of the plot area; 0: 150
	Marks  []Mark
}

// Mark is an upright line at a value, such as a null or a threshold.
type Mark struct {
	Name string
	At   float64
}

func (h *Histogram) height(float64) float64 {
	height := h.Height
	if height == 0 {
		height = 150
	}
	return topRoom + height + bottomRoom
}

func (h *Histogram) draw(s *scene, b box) {
	s.add(text{x: b.x, y: b.y + headSize, s: h.Title, size: headSize, color: ink, bold: true})
	area := box{b.x + leftRoom, b.y + topRoom, b.w - leftRoom - 8, b.h - topRoom - bottomRoom}
	xs, counts := h.count()
	ys := axis{0, float64(max(slices.Max(counts), 1)), false}
	drawAxes(s, b, area, xs, ys, false, h.X, "count")
	width := area.w / float64(len(counts))
	for i, n := range counts {
		if n > 0 {
			height := area.h * ys.at(float64(n))
			s.add(rect{box{area.x + float64(i)*width + 0.5, area.y + area.h - height, max(width-1, 0.5), height}, Series[0]})
		}
	}
	for i, m := range h.Marks {
		x := area.x + area.w*xs.at(m.At)
		s.add(path{points: [][2]float64{{x, area.y}, {x, area.y + area.h}}, color: Series[1], width: 1.5, dashed: true})
		side, dx := start, 4.0
		if x > area.x+area.w/2 {
			side, dx = end, -4.0
		}
		s.add(text{x: x + dx, y: area.y + textSize + float64(i)*textSize*1.3, s: m.Name, size: textSize, anchor: side, color: ink})
	}
}

// count returns the range, which holds all values and marks, and the bins.
func (h *Histogram) count() (axis, []int) {
	values := slices.DeleteFunc(slices.Clone(h.Values), math.IsNaN)
	slices.Sort(values)
	xs := axis{0, 1, false}
	all := slices.Clone(values)
	for _, m := range h.Marks {
		all = append(all, m.At)
	}
	if len(all) > 0 {
		xs = axis{slices.Min(all), slices.Max(all), false}.widened()
	}
	counts := make([]int, h.bins(values, xs.hi-xs.lo))
	for _, v := range values {
		counts[min(int(xs.at(v)*float64(len(counts))), len(counts)-1)]++
	}
	return xs, counts
}

// bins is the number of bins, each 2·IQR/∛n wide unless the caller chose.
func (h *Histogram) bins(sorted []float64, span float64) int {
	if h.Bins > 0 {
		return h.Bins
	}
	n := len(sorted)
	if n < 4 {
		return 5
	}
	width := 2 * (sorted[3*n/4] - sorted[n/4]) / math.Cbrt(float64(n))
	if !(width > 0) {
		return 20
	}
	return int(min(max(math.Ceil(span/width), 5), 60))
}
