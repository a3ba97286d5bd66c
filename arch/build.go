package arch

import (
	"fmt"

	"github.com/eigenhead/eigenhead/head"
)

// builder finds the tensors of one model under one naming.
type builder struct {
	*finder
	m      *Model
	n      naming
	prefix string
	at     string // prefix of the layer at hand
}

// build finds every tensor that the plan and the naming ask for, and describes
// the layers with them.
func build(m *Model, f *finder, n naming, tied tying) {
	f.ignore = n.ignore
	b := &builder{finder: f, m: m, n: n}
	if n.prefixes != nil {
		b.prefix = f.withPrefix(n.embedding+".weight", n.prefixes...)
	}
	if m.GGUF {
		ggufVocab(m, f)
	}
	b.embeddings()
	b.ropeTables()
	m.FinalNorm = b.norm(b.prefix+n.finalNorm, n.finalNorm)
	for l := 0; l < m.Layers && f.err == nil; l++ {
		b.at = b.prefix + fmt.Sprintf(n.layer, l)
		m.Blocks = append(m.Blocks, b.block(l))
	}
	b.output(tied)
}

// ropeTables finds divisors of frequencies that are stored as tensors.
func (b *builder) ropeTables() {
	r := b.m.Rope
	table := func(name string) *Vector {
		v := b.vector(name+".weight", "rotated components / 2", r.Dim/2)
		return &v
	}
	if r == nil {
		return
	}
	if name := b.n.ropeTable; name != "" && b.has(name+".weight") {
		r.Table = table(name)
	}
	if r.Long != nil && r.Long.Short == nil {
		r.Long.ShortTable, r.Long.LongTable = table(b.n.ropeShort), table(b.n.ropeLong)
	}
}

// embeddings finds what turns ids into the residual stream.
func (b *builder) embeddings() {
	m, n := b.m, b.n
	if m.EmbeddingScale == 0 {
		m.EmbeddingScale = 1
	}
	width := m.Width
	if m.plan.embedding != 0 && m.plan.embedding != m.Width {
		width = m.plan.embedding
		in := b.linear(b.prefix+n.embeddingIn, n.words.width, m.Width, width, biasRule{})
		m.EmbeddingIn = &in
	}
	m.Embedding = b.matrix(b.prefix+n.embedding+".weight", n.words.vocab+" × "+n.words.width, m.Vocab, width)
	if n.positions != "" {
		positions := b.matrix(b.prefix+n.positions+".weight", n.words.context+" × "+n.words.width, m.Context+m.FirstPosition, m.Width)
		m.Positions = &positions
	}
	if n.tokenTypes != "" {
		name := b.prefix + n.tokenTypes + ".weight"
		if t, ok := b.c.Tensor(name); ok && m.GGUF && len(t.Shape) == 2 { // the key is the vocabulary's
			m.plan.types = t.Shape[0]
		}
		types := b.matrix(name, "type_vocab_size × "+n.words.width, m.plan.types, m.Width)
		m.TokenTypes = &types
	}
	m.EmbeddingNorm = b.norm(b.prefix+n.embeddingNorm, n.embeddingNorm)
}

// output finds what turns the residual stream into logits.
func (b *builder) output(tied tying) {
	m, n := b.m, b.n
	if n.head == "" {
		return
	}
	if m.EmbeddingIn != nil {
		in := b.linear(b.prefix+n.headIn, n.words.width, m.plan.embedding, m.Width, biasRule{})
		m.HeadIn = &in
	}
	b.finder.head(m, n.head+".weight", n.words.vocab+" × "+n.words.width, tied)
	if m.Head != nil {
		m.HeadBias = b.biasOf(n.head, n.words.vocab, m.Vocab, m.plan.headBias)
	}
}

// block finds the tensors of one layer.
func (b *builder) block(l int) Block {
	m, n := b.m, b.n
	block := Block{Scale: m.Scale, Mask: head.Causal, Rope: m.Rope, Softcap: m.plan.softcap, Slopes: m.plan.slopes, Parallel: m.plan.parallel}
	if m.plan.scale != nil {
		block.Scale = m.plan.scale(l)
	}
	if m.plan.masks != nil {
		block.Mask = m.plan.masks[l]
	}
	if m.plan.ropes != nil {
		block.Rope = m.plan.ropes[l]
	}
	block.AttnNorm = b.layerNorm(n.attnNorm)
	b.attention(&block)
	block.AttnWriteNorm, block.AttnAddNorm = b.layerNorm(n.attnWriteNorm), b.layerNorm(n.attnAddNorm)
	block.FFNNorm = b.layerNorm(n.ffnNorm)
	if m.plan.experts > 0 && (m.plan.dense == nil || !m.plan.dense(l)) {
		block.Experts = b.experts()
	} else {
		b.mlp(&block)
	}
	block.FFNWriteNorm, block.FFNAddNorm = b.layerNorm(n.ffnWriteNorm), b.layerNorm(n.ffnAddNorm)
	return block
}

// attention finds the projections and what else scores depend on.
func (b *builder) attention(block *Block) {
	m, n, p := b.m, b.n, b.m.plan
	q, kv := m.qkvRows()
	queries, keys := n.words.heads+"·"+n.words.headDim, n.words.kvHeads+"·"+n.words.headDim
	if n.qkv != "" {
		fused := b.linear(b.at+n.qkv, "("+n.words.heads+" + 2·"+n.words.kvHeads+")·"+n.words.headDim+" × "+n.words.width, q+2*kv, m.Width, p.qkvBias)
		block.QKV = []Linear{fused.ordered(p.qkvOrder)}
	} else {
		block.QKV = []Linear{
			b.linear(b.at+n.q, queries+" × "+n.words.width, q, m.Width, p.qkvBias).ordered(p.qOrder),
			b.linear(b.at+n.k, keys+" × "+n.words.width, kv, m.Width, p.qkvBias).ordered(p.kOrder),
			b.linear(b.at+n.v, keys+" × "+n.words.width, kv, m.Width, p.qkvBias),
		}
	}
	block.QNorm, block.KNorm = b.headNorm(n.qNorm, m.Heads), b.headNorm(n.kNorm, m.KVHeads)
	if n.sinks != "" {
		name := b.at + n.sinks
		if b.m.GGUF {
			name += ".weight"
		}
		sinks := b.vector(name, n.words.heads, m.Heads)
		block.Sinks = &sinks
	}
	block.Out = b.linear(b.at+n.out, n.words.width+" × "+queries, m.Width, q, p.outBias)
}

// mlp finds the one MLP of a layer.
func (b *builder) mlp(block *Block) {
	m, n, rule, ffn := b.m, b.n, b.m.plan.mlpBias, b.m.FFN
	if m.plan.denseFFN != 0 {
		ffn = m.plan.denseFFN
	}
	in, out := n.words.ffn+" × "+n.words.width, n.words.width+" × "+n.words.ffn
	switch {
	case n.gateUp != "":
		both := b.linear(b.at+n.gateUp, "2·"+in, 2*ffn, m.Width, rule)
		gate := both.part(0, ffn)
		block.Gate, block.Up = &gate, both.part(ffn, 2*ffn)
	case n.gate != "":
		gate := b.linear(b.at+n.gate, in, ffn, m.Width, rule)
		block.Gate, block.Up = &gate, b.linear(b.at+n.up, in, ffn, m.Width, rule)
	default:
		block.Up = b.linear(b.at+n.up, in, ffn, m.Width, rule)
	}
	block.Down = b.linear(b.at+n.down, out, m.Width, ffn, rule)
}

// linear returns a linear map [out, in] with its bias.
func (b *builder) linear(name, why string, out, in int, rule biasRule) Linear {
	weight := b.finder.linear(name+".weight", why, out, in, b.n.conv1D)
	return Linear{Weight: weight, Bias: b.biasOf(name, why, out, rule)}
}

// biasOf returns the bias of a linear map. GGUF has no key that tells of it.
func (b *builder) biasOf(name, why string, n int, rule biasRule) *Vector {
	if b.m.GGUF && !rule.has {
		return b.optional(name+".bias", why, n)
	}
	return b.bias(name+".bias", why, n, rule.has, rule.key)
}

// ggufVocab takes the size of the vocabulary from the embedding where no key
// gives it, as llama.cpp takes it from the list of tokens.
func ggufVocab(m *Model, f *finder) {
	t, ok := f.c.Tensor("token_embd.weight")
	if m.Vocab == 0 && ok && len(t.Shape) == 2 {
		m.Vocab = t.Shape[0]
	}
}
