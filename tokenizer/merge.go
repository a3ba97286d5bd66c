package tokenizer

// Merging pairs of neighbors until no pair can be joined is what both kinds of
// BPE do; they differ in which pairs may be joined and which goes first. One
// heap of candidates serves both: popping the best, leftmost candidate and
// pushing at most two new ones per merge costs O(n log n) for a piece of n
// symbols, where scanning for the best pair each time would cost O(n²): text
// such as one long run of "xxxx" makes that difference minutes.

// symbol is a stretch of the piece that is one token so far.
type symbol struct {
	from, n    int32 // bytes [from, from+n); n = 0 once merged into another
	prev, next int32 // neighbors, -1 at the ends
	id         int32 // its token, or noID
}

// joiner says whether two neighbors may become one: their rank (lower goes
// first) and the token they make.
type joiner interface {
	join(piece []byte, left, right *symbol) (rank uint32, id int32, ok bool)
}

// candidate is a pair that may be joined. Equal ranks go left to right.
type candidate struct {
	rank uint32
	left int32
	size int32 // bytes of both: another size now means that it is outdated
	id   int32
}

func (c candidate) before(d candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.left < d.left
}

// merger holds the buffers of one call; they are reused from piece to piece.
type merger struct {
	symbols []symbol
	heap    []candidate
}

// reset empties the list of symbols.
func (m *merger) reset() { m.symbols, m.heap = m.symbols[:0], m.heap[:0] }

// push appends a symbol of n bytes that starts at from.
func (m *merger) push(from, n int, id int32) {
	i := int32(len(m.symbols))
	if i > 0 {
		m.symbols[i-1].next = i
	}
	m.symbols = append(m.symbols, symbol{from: int32(from), n: int32(n), prev: i - 1, next: -1, id: id})
}

// merge joins neighbors, best first, until none can be joined. The first
// symbol stays first; follow next from there.
func (m *merger) merge(piece []byte, j joiner) {
	for i := 1; i < len(m.symbols); i++ {
		m.offer(piece, j, int32(i-1), int32(i))
	}
	for len(m.heap) > 0 {
		c := m.pop()
		left := &m.symbols[c.left]
		if left.n == 0 || left.next < 0 {
			continue
		}
		right := &m.symbols[left.next]
		if left.n+right.n != c.size {
			continue
		}
		left.n, left.id, left.next = c.size, c.id, right.next
		right.n = 0
		if left.next >= 0 {
			m.symbols[left.next].prev = c.left
		}
		m.offer(piece, j, left.prev, c.left)
		m.offer(piece, j, c.left, left.next)
	}
}

// offer adds the pair to the heap if it may be joined.
func (m *merger) offer(piece []byte, j joiner, left, right int32) {
	if left < 0 || right < 0 {
		return
	}
	l, r := &m.symbols[left], &m.symbols[right]
	rank, id, ok := j.join(piece, l, r)
	if !ok {
		return
	}
	m.heap = append(m.heap, candidate{rank: rank, left: left, size: l.n + r.n, id: id})
	for i := len(m.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !m.heap[i].before(m.heap[up]) {
			break
		}
		m.heap[i], m.heap[up] = m.heap[up], m.heap[i]
		i = up
	}
}

// pop removes and returns the best candidate.
func (m *merger) pop() candidate {
	top := m.heap[0]
	last := len(m.heap) - 1
	m.heap[0] = m.heap[last]
	m.heap = m.heap[:last]
	for i := 0; ; {
		best := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < last && m.heap[down].before(m.heap[best]) {
				best = down
			}
		}
		if best == i {
			return top
		}
		m.heap[i], m.heap[best] = m.heap[best], m.heap[i]
		i = best
	}
}
