// Package spelling finds the name that a person may have meant. It knows nothing of
// what the names stand for.
package spelling

// Of returns the name with the fewest edits from s, the first of several; "" if
// there are no names.
func Of(s string, names []string) string {
	best, fewest := "", -1
	for _, name := range names {
		if d := Edits(s, name); fewest < 0 || d < fewest {
			best, fewest = name, d
		}
	}
	return best
}

// Edits is the Levenshtein distance in bytes. Cost: O(len(a)·len(b)).
func Edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
