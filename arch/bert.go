package arch

import "github.com/eigenhead/eigenhead/head"

// bert is BERT and what was trained in its shape, MiniLM and sentence embedding
// models among them: an encoder without a mask, learned positions, a norm of the
// stream after each write, and no logits. Every token has type 0. Reference:
// transformers, models/bert; llama.cpp, LLM_ARCH_BERT.
var bert = &family{
	Name:       "bert",
	ModelTypes: []string{"bert"},
	Classes: []string{"BertModel", "BertForMaskedLM", "BertForPreTraining", "BertForNextSentencePrediction",
		"BertForSequenceClassification", "BertForTokenClassification", "BertForQuestionAnswering"},
	GGUF:     "bert",
	Config:   func(m *Model, s *settings) { bertConfig(m, s, "BertConfig default", 0) },
	Metadata: bertMetadata,
	Names:    func(m *Model, f *finder) naming { return bertNames(m, f, "bert.") },
}

// roberta is RoBERTa: BERT whose positions start after the id of padding. Its
// GGUF files say bert. Reference: transformers, models/roberta and
// models/xlm_roberta.
var roberta = &family{
	Name:       "roberta",
	ModelTypes: []string{"roberta", "xlm-roberta"},
	Classes: []string{"RobertaModel", "RobertaForMaskedLM", "RobertaForSequenceClassification", "RobertaForTokenClassification",
		"XLMRobertaModel", "XLMRobertaForMaskedLM", "XLMRobertaForSequenceClassification", "XLMRobertaForTokenClassification"},
	Config: func(m *Model, s *settings) {
		bertConfig(m, s, "RobertaConfig default", s.countOr("pad_token_id", maxVocab, 1, "RobertaConfig default")+1)
	},
	Names: func(m *Model, f *finder) naming { return bertNames(m, f, "roberta.") },
}

// bertConfig reads a config.json; first is the row of the first position.
func bertConfig(m *Model, s *settings, source string, first int) {
	hfShape(m, s)
	m.Activation = s.activation("hidden_act", "gelu", source)
	m.NormEps = s.positiveOr("layer_norm_eps", 1e-12, source)
	m.plan.types = s.countOr("type_vocab_size", maxVocab, 2, source)
	s.mustBe("position_embedding_type", "absolute")
	s.mustBe("is_decoder", false)
	s.mustBe("add_cross_attention", false)
	for _, key := range []string{"hidden_dropout_prob", "attention_probs_dropout_prob", "tie_word_embeddings"} {
		s.asked[key] = true // training; a head that is not run
	}
	m.FirstPosition = first
	finishBERT(m, s, "hidden_size", "num_attention_heads")
	if s.err == nil && m.Context <= first {
		s.wrong("max_position_embeddings", m.Context, "more than the positions that are not used")
		return
	}
	m.Context -= first
}

// bertMetadata reads the keys of a GGUF. llama.cpp drops the rows of positions
// that are not used.
func bertMetadata(m *Model, s *settings) {
	ggufShape(m, s)
	m.NormEps = s.positive("attention.layer_norm_epsilon")
	ggufHeads(m, s)
	m.Activation = GELU
	s.byDefault("activation", GELU, "BERT's; llama.cpp computes its tanh form")
	if s.flagOr("attention.causal", true, "llama.cpp default") {
		s.refuse("attention.causal", false, "a decoder of this shape is not supported")
	}
	s.asked["pooling_type"] = true // after the last layer
	finishBERT(m, s, "embedding_length", "attention.head_count")
}

func finishBERT(m *Model, s *settings, width, heads string) {
	finishLayerNorm(m, s, width, heads)
	m.Position = "learned"
	m.plan.qkvBias.has, m.plan.outBias.has = true, true
	m.plan.masks = make([]head.Mask, m.Layers) // none
}

// bertNames gives the names in either format.
func bertNames(m *Model, f *finder, prefix string) naming {
	if m.GGUF {
		n := ggufNames().plain()
		n.positions, n.tokenTypes, n.embeddingNorm = "position_embd", "token_types", "token_embd_norm"
		n.attnNorm, n.ffnNorm, n.finalNorm, n.head = "", "", "", ""
		n.attnAddNorm, n.ffnAddNorm = "attn_output_norm", "layer_output_norm"
		n.ignore = []string{"cls."}
		return n.fusedIfThere(f)
	}
	const at = "embeddings."
	return naming{
		prefixes: []string{prefix, ""},
		layer:    "encoder.layer.%d.", words: hfWords,
		ignore:    []string{"position_ids", "pooler.", "cls.", "lm_head.", "classifier.", "qa_outputs."}, // a buffer, and heads that are not run
		embedding: at + "word_embeddings", positions: at + "position_embeddings", tokenTypes: at + "token_type_embeddings",
		embeddingNorm: at + "LayerNorm",
		q:             "attention.self.query", k: "attention.self.key", v: "attention.self.value", out: "attention.output.dense",
		attnAddNorm: "attention.output.LayerNorm",
		up:          "intermediate.dense", down: "output.dense", ffnAddNorm: "output.LayerNorm",
	}
}
