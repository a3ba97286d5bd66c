package kernel

import (
	"sync"
	"unsafe"
)

// band is some panels of B and the columns of C that they give. The worker that
// begins it packs the panels; whoever is free then multiplies chunks of rows of A
// by them.
type band[E Float] struct {
	from, to int // panels
	buf      []E
	w        *workspace[E] // of buf
	next     int           // chunk to begin
	left     int           // chunks not done
}

// schedule hands out the bands of a product and their chunks. A worker stays with
// its own band, so that its panels are read from its own cache; where no band is
// left to begin it helps with those of others.
type schedule[E Float] struct {
	p             *product[E]
	bands, chunks int
	mu            sync.Mutex
	changed       sync.Cond // a band was packed, or packing failed
	begun         int
	packing       int        // bands begun and not packed yet
	open          []*band[E] // packed, with chunks to begin
	failed        bool
	err           error // of the first band that failed, in order of rows of Bᵀ
	errFrom       int   // its first panel
}

// bands multiplies the block of rows at hand by all of B. The error is that of the
// source.
func (p *product[E]) bands() error {
	panelsI, panelsJ := ceil(p.rows, p.t.mr), ceil(p.n, p.t.nr)
	bands, chunks := p.countBands(panelsJ), ceil(panelsI, max(1, chunkRows/p.t.mr))
	if bands*chunks == 1 {
		b := band[E]{to: panelsJ}
		if err := p.packBand(&b); err != nil {
			return err
		}
		p.part(0, panelsI, 0, panelsJ, b.buf)
		b.w.free()
		return nil
	}
	s := &schedule[E]{p: p, bands: bands, chunks: chunks}
	s.changed.L = &s.mu
	p.run(bands*chunks, func(int) { s.work() })
	return s.err
}

// countBands returns how many bands so many panels make.
func (p *product[E]) countBands(panels int) int {
	most := min(bandCols, bandBytes/(p.kg*int(unsafe.Sizeof(E(0)))))
	n := ceil(panels, max(1, most/p.t.nr))
	if p.rows*p.n*p.kg < sharedWork {
		return n
	}
	return max(n, min(minBands, panels/4))
}

// work does what there is to do until nothing is left to begin.
func (s *schedule[E]) work() {
	defer s.stopOnPanic()
	var own *band[E]
	for {
		b, chunk := s.take(own)
		switch {
		case b == nil:
			return
		case chunk < 0:
			own = b
			s.packed(b, s.p.packBand(b))
		default:
			panels := ceil(s.p.rows, s.p.t.mr)
			s.p.part(chunk*panels/s.chunks, (chunk+1)*panels/s.chunks, b.from, b.to, b.buf)
			s.done(b)
		}
	}
}

// take returns a chunk to multiply, or a band to pack with chunk −1, or nil.
func (s *schedule[E]) take(own *band[E]) (b *band[E], chunk int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.failed {
		if own != nil && own.next < s.chunks {
			return s.begin(own)
		}
		if s.begun < s.bands {
			panels := ceil(s.p.n, s.p.t.nr)
			b := &band[E]{from: s.begun * panels / s.bands, to: (s.begun + 1) * panels / s.bands, left: s.chunks}
			s.begun++
			s.packing++
			return b, -1
		}
		for _, b := range s.open {
			if b.next < s.chunks {
				return s.begin(b)
			}
		}
		if s.packing == 0 {
			return nil, 0
		}
		s.changed.Wait()
	}
	return nil, 0
}

func (s *schedule[E]) begin(b *band[E]) (*band[E], int) {
	b.next++
	return b, b.next - 1
}

// packed opens a band to all workers.
func (s *schedule[E]) packed(b *band[E], err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packing--
	s.open = append(s.open, b)
	if err != nil {
		s.failed = true
		// Bands begin in order: those before this one were begun, and report too.
		if s.err == nil || b.from < s.errFrom {
			s.err, s.errFrom = err, b.from
		}
	}
	s.changed.Broadcast()
}

// done frees the panels of a band after its last chunk.
func (s *schedule[E]) done(b *band[E]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.left--; b.left > 0 {
		return
	}
	b.w.free()
	for i, o := range s.open {
		if o == b {
			s.open = append(s.open[:i], s.open[i+1:]...)
			return
		}
	}
}

// stopOnPanic lets no worker wait for one that panics.
func (s *schedule[E]) stopOnPanic() {
	if v := recover(); v != nil {
		s.mu.Lock()
		s.failed = true
		s.changed.Broadcast()
		s.mu.Unlock()
		panic(v)
	}
}
