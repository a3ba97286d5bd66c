package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// ParseIndex reads a model.safetensors.index.json: which shard holds which
// tensor. A tensor given twice, or no weight_map, is an error.
func ParseIndex(name string, data []byte) (map[string]string, error) {
	if err := Sniff(name, data); err != nil {
		return nil, err
	}
	s := scanner{json.NewDecoder(bytes.NewReader(data))}
	s.dec.UseNumber()
	var shards map[string]string
	err := s.object(func(key string) error {
		if key != "weight_map" {
			var skip json.RawMessage // sizes and notes: nothing depends on them
			return s.dec.Decode(&skip)
		}
		if shards != nil {
			return errors.New("weight_map given twice")
		}
		shards = map[string]string{}
		return s.object(func(tensor string) error {
			shard, err := s.string()
			if err != nil {
				return fmt.Errorf("weight_map %q: %w", tensor, err)
			}
			if _, twice := shards[tensor]; twice {
				return fmt.Errorf("weight_map: tensor %q given twice", tensor)
			}
			shards[tensor] = shard
			return nil
		})
	})
	if err == nil {
		err = s.end()
	}
	if err == nil && len(shards) == 0 {
		err = errors.New("weight_map is missing or empty")
	}
	if err == nil && !utf8.Valid(data) {
		err = errors.New("not UTF-8")
	}
	if err != nil {
		return nil, &xerr.Format{File: name, What: "index", Found: err, Want: "a JSON object with weight_map: tensor to shard",
			Hint: "download the index again"}
	}
	return shards, nil
}
