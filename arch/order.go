package arch

// rowOrder returns the row to which row i of the file belongs.
type rowOrder func(i int) int

// deinterleaved is the order of rows that llama.cpp stores for its own RoPE, in
// heads of d rows: it turns rows (2j, 2j+1) together and Hugging Face rows
// (j, j + d/2).
func deinterleaved(d int) rowOrder {
	return func(i int) int {
		in := i % d
		return i - in + in%2*(d/2) + in/2
	}
}

// grouped is the order of a fused projection that stores, one group after
// another, the queries of the group, its key and its value, each of d rows;
// queries is how many query heads a group has.
func grouped(groups, queries, d int) rowOrder {
	return func(i int) int {
		group, part, in := i/((queries+2)*d), i/d%(queries+2), i%d
		switch part {
		case queries:
			return (groups*queries+group)*d + in
		case queries + 1:
			return (groups*queries+groups+group)*d + in
		}
		return (group*queries+part)*d + in
	}
}
