package tokenizer

import "fmt"

// ggufBOS reads the settings of the token in front.
func (t *Tokenizer) ggufBOS(kv KV, model string, byDefault bool) (err error) {
	switch {
	case kv.Has(keyAddBOS):
		t.bos.source = keyAddBOS
		if t.bos.add, err = kv.Bool(keyAddBOS); err != nil {
			return err
		}
	case model == "llama":
		t.bos.add, t.bos.source = true, keyAddBOS+" is missing: true for SentencePiece vocabularies, as in llama.cpp"
	case model == "bert":
		t.bos.add, t.bos.source = true, keyAddBOS+" is missing: true for WordPiece vocabularies, as in llama.cpp"
	default:
		t.bos.add = byDefault
		t.bos.source = fmt.Sprintf("%s is missing: %v for this splitter, as in llama.cpp", keyAddBOS, byDefault)
	}
	if !t.bos.add && !kv.Has(keyBOS) {
		return nil
	}
	if id := map[string]int32{"llama": 1, "bert": 101}[model]; !kv.Has(keyBOS) && id > 0 && int(id) < len(t.pieces) {
		t.bos.id = id
		t.defaults = append(t.defaults, fmt.Sprintf("%s is missing: %d, as in llama.cpp", keyBOS, id))
		return nil
	}
	t.bos.id, err = t.ggufID(kv, keyBOS)
	return err
}

// ggufEnd reads the settings of the token behind: a separator before an end.
func (t *Tokenizer) ggufEnd(kv KV, ends ggufEnds) (err error) {
	for _, k := range []struct {
		add, id   string
		byDefault bool
		fallback  int32 // as in llama.cpp
	}{{keyAddSep, keySep, ends.sep, 102}, {keyAddEOS, keyEOS, ends.eos, 1}} {
		add := k.byDefault
		if kv.Has(k.add) {
			if add, err = kv.Bool(k.add); err != nil {
				return err
			}
		}
		if !add {
			continue
		}
		t.end = bos{id: k.fallback, add: true, source: k.add}
		if kv.Has(k.id) || k.id == keyEOS && !ends.eos {
			if t.end.id, err = t.ggufID(kv, k.id); err != nil {
				return err
			}
			return nil
		}
		t.defaults = append(t.defaults, fmt.Sprintf("%s is missing: %d, as in llama.cpp", k.id, k.fallback))
		if int(k.fallback) >= len(t.pieces) {
			t.end = bos{}
		}
		return nil
	}
	return nil
}
