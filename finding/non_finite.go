package finding

import "fmt"

// NonFinite reports NaN and infinities.
var NonFinite = &Rule{
	Code: "non-finite", Severity: Critical,
	Doc: Doc{
		Summary: "A tensor that enters attention holds NaN or an infinity.",
		Means:   "Nothing computed from this tensor has a value; measures that need it are left out.",
		Do: "In training, go back to the last good checkpoint and look for an overflow in this layer; " +
			"for a file, check that it was written in full and that its type can hold the numbers.",
	},
	Check: checkNonFinite,
}

func checkNonFinite(in *Input) []Finding {
	var found []Finding
	for _, n := range in.Table.NonFinite {
		found = append(found, Finding{
			Severity: Critical, Where: n.Where,
			Text: fmt.Sprintf("%s has a value that is not finite: %s in tensor %q, token %d, column %d",
				n.Where, n.Value, n.Tensor, n.Token, n.Column),
			Evidence: map[string]any{"tensor": n.Tensor, "token": n.Token, "column": n.Column, "found": n.Value},
		})
	}
	return found
}
