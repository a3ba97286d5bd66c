package specialize

import "fmt"

// notes are what a reader of the numbers has to know, in words.
func (s *Study) notes(r *Report) []string {
	list := []string{
		"Losses are |y − ŷ|²/D as D → ∞: zero weights give 1, uniform ones 1 − 1/L.",
		fmt.Sprintf("Expectations: %s, %d samples, the same for all states; losses and Bayes risks on as many independent ones.", r.Setting.Method, r.Setting.Samples),
	}
	softmax, one := false, false
	for _, m := range s.Models {
		softmax = softmax || m.Activation == Softmax
		one = one || m.Activation == Softmax1
	}
	law := r.Setting.Law
	if softmax {
		if law.Symmetric() {
			list = append(list, fmt.Sprintf("Softmax under this law (θ and −θ alike) stays above L/(4(L−1)) = %.4f at any signal and any number of heads; with an odd number, heads of two signs reach %.4f at H = 3.",
				SoftmaxFloor(r.Setting.Tokens, 2), SoftmaxFloor(r.Setting.Tokens, 3)))
		} else {
			list = append(list, "Softmax's floor L/(4(L−1)) holds for laws with θ and −θ alike; this is not one.")
		}
	}
	if one {
		list = append(list, "Softmax-1 comes near zero error under strong signal only as a sum with a trained bias. Without a bias, or as a mean of heads, it does not: a mean over two heads of opposite sign stays above 1/4. --bias off and --aggregate mean show it.")
	}
	if points, _, finite := law.Points(); finite {
		list = append(list, fmt.Sprintf("Bayes-softmax can equal the Bayes predictor with one head for each point of the support: %d here. H ≥ F does not suffice, and descent may stop short of it.", len(points)))
	} else {
		list = append(list, "Under this law no finite number of heads reaches the Bayes risk; H ≥ F does not suffice.")
	}
	if s.Settings.Rate == 0 && s.Engine == EngineODE {
		list = append(list, "The dynamics is the flow of infinitely small steps; --rate η adds the noise of finite ones (Saad–Solla).")
	}
	return list
}
