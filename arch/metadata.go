package arch

import "strings"

// metadata is what a GGUF's key-value table must answer.
type metadata interface {
	Keys() []string
	String(key string) (string, error)
	Uint(key string) (uint64, error)
	Int(key string) (int64, error)
	Float(key string) (float64, error)
	Bool(key string) (bool, error)
	Ints(key string) ([]int64, error)
	Floats(key string) ([]float64, error)
	Strings(key string) ([]string, error)
}

// metadataSettings reads the keys of one architecture, such as "llama.", out of
// a GGUF. Keys outside it describe the file and the vocabulary: they change no
// number of the forward pass.
func metadataSettings(file, prefix string, kv metadata) *settings {
	values := map[string]any{}
	for _, key := range kv.Keys() {
		if name, ours := strings.CutPrefix(key, prefix); ours {
			values[name] = metadataValue(kv, key)
		}
	}
	return newSettings(file, prefix, values)
}

// metadataValue returns the value of a key as settings holds it. The getters
// refuse every type but their own, so the first that answers is right.
func metadataValue(kv metadata, key string) any {
	if v, err := kv.String(key); err == nil {
		return v
	}
	if v, err := kv.Bool(key); err == nil {
		return v
	}
	if v, err := kv.Uint(key); err == nil {
		return v
	}
	if v, err := kv.Int(key); err == nil {
		return v
	}
	if v, err := kv.Float(key); err == nil {
		return v
	}
	if v, err := kv.Ints(key); err == nil {
		return list(v)
	}
	if v, err := kv.Floats(key); err == nil {
		return list(v)
	}
	v, err := kv.Strings(key)
	if err != nil {
		return "a value of a type that no known key has"
	}
	return list(v)
}

func list[T any](values []T) []any {
	l := make([]any, len(values))
	for i, v := range values {
		l[i] = v
	}
	return l
}
