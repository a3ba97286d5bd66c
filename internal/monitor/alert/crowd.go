package alert

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/eigenhead/eigenhead/finding"
)

// crowdOf puts one verdict about the run in the place of many about heads: where more
// are ill than anybody reads, those that have no alert yet get none of their own. The
// run's verdict is always there, so that it can recover.
func (st *state) crowdOf(r *Rule, sample int, verdicts []verdict) []verdict {
	var ill []verdict
	for _, v := range verdicts {
		if v.severity != "" {
			ill = append(ill, v)
		}
	}
	whole := well(wholeRun)
	if float64(len(ill)) > st.t.Crowd {
		// The worst first, and as they were found where nothing tells them apart.
		slices.SortStableFunc(ill, func(a, b verdict) int {
			return cmp.Or(cmp.Compare(b.severity.Rank(), a.severity.Rank()), cmp.Compare(b.weight, a.weight))
		})
		whole.severity, whole.atOnce = ill[0].severity, ill[0].atOnce
		whole.say = func() (string, map[string]any) { return sayCrowd(ill, len(verdicts)) }
		for i, v := range verdicts {
			if v.severity != "" && !st.tracks[trackKey{r.Code, v.name(), sample}].firing {
				verdicts[i].severity, verdicts[i].near = "", true
			}
		}
	}
	return append(verdicts, whole)
}

// sayCrowd names the worst heads and says of the first what it would say alone.
func sayCrowd(ill []verdict, all int) (string, map[string]any) {
	first, evidence := ill[0].say()
	var names []string
	critical := 0
	for _, v := range ill {
		if v.severity == finding.Critical {
			critical++
		}
		if len(names) < 16 {
			names = append(names, v.where)
		}
	}
	evidence["heads"], evidence["heads_ill"], evidence["heads_critical"], evidence["heads_all"] = names, len(ill), critical, all
	return fmt.Sprintf("%d of %d heads are ill; the worst: %s", len(ill), all, first), evidence
}
