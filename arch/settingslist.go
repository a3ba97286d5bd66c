package arch

import "fmt"

// words returns a list of strings; none if the key has no value.
func (s *settings) words(key string) []string {
	v, ok := s.get(key)
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	var words []string
	for _, e := range list {
		w, isWord := e.(string)
		ok = ok && isWord
		words = append(words, w)
	}
	if !ok {
		s.wrong(key, v, "a list of names")
	}
	return words
}

// numbers returns a list of n numbers; nil if the key has no value.
func (s *settings) numbers(key string, n int) []float64 {
	v, ok := s.get(key)
	if !ok {
		return nil
	}
	list, _ := v.([]any)
	if len(list) != n {
		s.wrong(key, fmt.Sprintf("%d values", len(list)), fmt.Sprintf("a list of %d numbers", n))
		return nil
	}
	values := make([]float64, n)
	for i, e := range list {
		x, ok := number(e)
		if !ok {
			s.wrong(key, e, "a list of numbers")
			return nil
		}
		values[i] = x
	}
	return values
}

// section returns the settings of an object, such as rope_parameters; nil if
// the key has no value. Its errors and defaults join s by close.
func (s *settings) section(key string) *settings {
	v, ok := s.get(key)
	if !ok {
		return nil
	}
	values, ok := v.(map[string]any)
	if !ok {
		s.wrong(key, v, "an object")
		return nil
	}
	return newSettings(s.file, s.prefix+key+".", values)
}

// close ends a section: its unknown keys are refused as s's own are.
func (s *settings) close(section *settings) {
	err := section.done()
	s.defaults = append(s.defaults, section.defaults...)
	if s.err == nil {
		s.err = err
	}
}
