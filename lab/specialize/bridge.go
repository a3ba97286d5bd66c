package specialize

import (
	"fmt"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
)

// Overlap is a matrix of cosines between heads with its groups. Cosines follow the
// order of Heads.
type Overlap struct {
	Name      string      `json:"name"`
	Heads     []string    `json:"heads"`
	Cosines   [][]float64 `json:"cosines"`
	Order     []int       `json:"order"` // positions, alike heads side by side
	Groups    []Group     `json:"groups"`
	Redundant []string    `json:"redundant"`
	Opposed   [][2]string `json:"opposed"`  // names of groups that are one field with two signs
	Level     float64     `json:"level"`    // mean cosine that makes a group
	Families  []Group     `json:"families"` // heads that are related, at attention.RelatedCosine; those of several heads
	Omitted   []string    `json:"omitted,omitempty"`
}

// Group is heads that do the same; the first stands for them.
type Group struct {
	Name  string   `json:"name"`
	Heads []string `json:"heads"`
}

// Measured returns the overlaps of the heads of one layer of a real model: the
// cosines of their energy fields, the measured counterpart of Simulated.
// Errors: those of attention.Overlaps.
func Measured(name string, pairs []head.Pair) (*Overlap, error) {
	cosines, defined, err := attention.Overlaps(pairs)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(pairs))
	for i, p := range pairs {
		names[i] = p.ID.String()
	}
	return newOverlap(name, names, cosines, defined), nil
}

// Simulated returns the same of a trained state: the covariance of the heads'
// scores over tokens and sequences,
//
//	cov(χ_h, χ_h') = r + m·C·mᵀ/L,  C = E[θθᵀ]
//
// (one token in L carries the signal), as cosines.
func Simulated(name string, m Model, law *Law, st State) *Overlap {
	H, F := st.K.Rows, m.Features
	cov := st.R()
	_, second := law.Moments()
	mc := linalg.New(H, F)
	linalg.Mul(mc, st.M(F), second)
	signal := linalg.New(H, H)
	linalg.MulTB(signal, mc, st.M(F))
	for i := range H {
		for j := range H {
			cov.Set(i, j, cov.At(i, j)+signal.At(i, j)/float64(m.Tokens))
		}
	}
	names := make([]string, H)
	for h := range names {
		names[h] = fmt.Sprintf("head %d", h+1)
	}
	cosines, defined := cosinesOf(cov, 1e-6)
	return newOverlap(name, names, cosines, defined)
}

func newOverlap(name string, names []string, cosines linalg.Matrix, defined []bool) *Overlap {
	c := attention.Cluster(cosines, defined, attention.RedundantCosine)
	o := &Overlap{Name: name, Heads: names, Order: c.Order, Level: c.Level, Redundant: []string{}, Opposed: [][2]string{}, Groups: []Group{}}
	for i := range cosines.Rows {
		o.Cosines = append(o.Cosines, append([]float64(nil), cosines.Row(i)...))
		if !defined[i] {
			o.Omitted = append(o.Omitted, names[i]+": no energy field")
		}
	}
	for i, g := range c.Groups {
		group := Group{Name: fmt.Sprintf("group %d", i+1)}
		for _, h := range g {
			group.Heads = append(group.Heads, names[h])
		}
		o.Groups = append(o.Groups, group)
	}
	o.Families = []Group{}
	for _, g := range attention.Cluster(cosines, defined, attention.RelatedCosine).Groups {
		if len(g) < 2 {
			continue
		}
		f := Group{Name: fmt.Sprintf("family %d", len(o.Families)+1)}
		for _, h := range g {
			f.Heads = append(f.Heads, names[h])
		}
		o.Families = append(o.Families, f)
	}
	for _, h := range c.Redundant {
		o.Redundant = append(o.Redundant, names[h])
	}
	for _, p := range c.Opposed {
		o.Opposed = append(o.Opposed, [2]string{o.Groups[p[0]].Name, o.Groups[p[1]].Name})
	}
	return o
}
