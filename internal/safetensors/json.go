package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// entry is one tensor as the header states it, unchecked.
type entry struct {
	name, dtype string
	shape       []uint64
	begin, end  uint64
}

// parseHeader reads the JSON of the header by hand: encoding/json would let a
// repeated key overwrite the first, and a number lose digits.
func (f *File) parseHeader(header []byte) error {
	f.tensors = map[string]*Tensor{}
	f.Metadata = map[string]string{}
	s := scanner{json.NewDecoder(bytes.NewReader(header))}
	s.dec.UseNumber()
	sawMeta := false
	err := s.object(func(name string) error {
		if name == "__metadata__" {
			if sawMeta {
				return errors.New("__metadata__ given twice")
			}
			sawMeta = true
			return s.strings(f.Metadata)
		}
		if _, twice := f.tensors[name]; twice {
			return fmt.Errorf("tensor %q given twice", name)
		}
		e, err := s.entry(name)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		f.tensors[name], err = f.place(e)
		return err
	})
	if err == nil {
		err = s.end()
	}
	var placed *xerr.Format // it names the tensor and what is wrong with it
	if err == nil || errors.As(err, &placed) {
		return err
	}
	return f.format("header", err, "JSON of tensor entries")
}

// scanner walks JSON that must have a known form.
type scanner struct{ dec *json.Decoder }

func (s scanner) delim(want json.Delim) error {
	tok, err := s.token()
	if err != nil {
		return err
	}
	if tok != want {
		return fmt.Errorf("%v where %v is due", tok, want)
	}
	return nil
}

func (s scanner) token() (json.Token, error) {
	tok, err := s.dec.Token()
	if err == io.EOF {
		return nil, errors.New("JSON ends early")
	}
	return tok, err
}

// object calls each for every key; each must read exactly the key's value.
func (s scanner) object(each func(key string) error) error {
	if err := s.delim('{'); err != nil {
		return err
	}
	for s.dec.More() {
		tok, err := s.token()
		if err != nil {
			return err
		}
		key, ok := tok.(string)
		if !ok {
			return fmt.Errorf("%v where a key is due", tok)
		}
		if err := each(key); err != nil {
			return err
		}
	}
	return s.delim('}')
}

func (s scanner) string() (string, error) {
	tok, err := s.token()
	if err != nil {
		return "", err
	}
	v, ok := tok.(string)
	if !ok {
		return "", fmt.Errorf("%v where a string is due", tok)
	}
	return v, nil
}

func (s scanner) strings(into map[string]string) error {
	return s.object(func(key string) error {
		v, err := s.string()
		if err != nil {
			return fmt.Errorf("__metadata__ %q: %w", key, err)
		}
		if _, twice := into[key]; twice {
			return fmt.Errorf("__metadata__ key %q given twice", key)
		}
		into[key] = v
		return nil
	})
}

func (s scanner) numbers() ([]uint64, error) {
	if err := s.delim('['); err != nil {
		return nil, err
	}
	var list []uint64
	for s.dec.More() {
		tok, err := s.token()
		if err != nil {
			return nil, err
		}
		num, ok := tok.(json.Number)
		if !ok {
			return nil, fmt.Errorf("%v where a number is due", tok)
		}
		v, err := strconv.ParseUint(num.String(), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s where a whole number from 0 to 2⁶⁴−1 is due", num)
		}
		list = append(list, v)
	}
	return list, s.delim(']')
}

func (s scanner) entry(name string) (*entry, error) {
	e := &entry{name: name}
	seen := map[string]bool{}
	err := s.object(func(key string) (err error) {
		if seen[key] {
			return fmt.Errorf("%q given twice", key)
		}
		seen[key] = true
		switch key {
		case "dtype":
			e.dtype, err = s.string()
		case "shape":
			e.shape, err = s.numbers()
		case "data_offsets":
			var at []uint64
			if at, err = s.numbers(); err == nil && len(at) != 2 {
				return fmt.Errorf("%d data_offsets where 2 are due", len(at))
			} else if err == nil {
				e.begin, e.end = at[0], at[1]
			}
		default: // the reference implementation skips what it does not know
			var skip json.RawMessage
			err = s.dec.Decode(&skip)
		}
		return err
	})
	for _, key := range []string{"dtype", "shape", "data_offsets"} {
		if err == nil && !seen[key] {
			err = fmt.Errorf("%s is missing", key)
		}
	}
	return e, err
}

func (s scanner) end() error {
	if tok, err := s.dec.Token(); err != io.EOF {
		return fmt.Errorf("%v after the end of the header (%v)", tok, err)
	}
	return nil
}
