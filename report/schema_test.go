package report

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// schema is the part of JSON Schema 2020-12 that docs/report.schema.json uses.
type schema struct {
	Ref         string             `json:"$ref"`
	Type        any                `json:"type"`
	Const       any                `json:"const"`
	Enum        []any              `json:"enum"`
	Pattern     string             `json:"pattern"`
	Minimum     *float64           `json:"minimum"`
	Required    []string           `json:"required"`
	Properties  map[string]*schema `json:"properties"`
	Additional  *schema            `json:"additionalProperties"`
	Items       *schema            `json:"items"`
	Defs        map[string]*schema `json:"$defs"`
	Description string             `json:"description"`
	Title       string             `json:"title"`
	Schema      string             `json:"$schema"`
	ID          string             `json:"$id"`
}

func readSchema(t *testing.T) *schema {
	f, err := os.Open("../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := new(schema)
	d := json.NewDecoder(f)
	d.DisallowUnknownFields() // a keyword that this checker would ignore
	if err := d.Decode(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// check appends to bad what v violates. Properties that the schema does not name
// are violations too: the schema must describe everything that we write.
func (s *schema) check(root *schema, at string, v any, bad *[]string) {
	if s.Ref != "" {
		s = root.Defs[strings.TrimPrefix(s.Ref, "#/$defs/")]
	}
	fail := func(format string, args ...any) { *bad = append(*bad, at+": "+fmt.Sprintf(format, args...)) }
	if s.Type != nil && !slices.ContainsFunc(types(s.Type), func(t string) bool { return isType(t, v) }) {
		fail("%v is no %v", v, s.Type)
	}
	if s.Const != nil && v != s.Const || s.Enum != nil && !slices.Contains(s.Enum, v) {
		fail("%v is not allowed", v)
	}
	switch v := v.(type) {
	case string:
		if s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(v) {
			fail("%q does not match %s", v, s.Pattern)
		}
	case float64:
		if s.Minimum != nil && v < *s.Minimum {
			fail("%g is below %g", v, *s.Minimum)
		}
	case []any:
		for i, e := range v {
			s.Items.check(root, fmt.Sprintf("%s[%d]", at, i), e, bad)
		}
	case map[string]any:
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				fail("%q is missing", name)
			}
		}
		for name, e := range v {
			switch inner := s.Properties[name]; {
			case inner != nil:
				inner.check(root, at+"."+name, e, bad)
			case s.Additional != nil:
				s.Additional.check(root, at+"."+name, e, bad)
			case !strings.HasSuffix(at, ".evidence"): // rules may add numbers of their own
				fail("%q is not in the schema", name)
			}
		}
	}
}

func types(t any) []string {
	if s, ok := t.(string); ok {
		return []string{s}
	}
	var list []string
	for _, e := range t.([]any) {
		list = append(list, e.(string))
	}
	return list
}

func isType(t string, v any) bool {
	switch v := v.(type) {
	case nil:
		return t == "null"
	case bool:
		return t == "boolean"
	case string:
		return t == "string"
	case float64:
		return t == "number" || t == "integer" && v == float64(int64(v))
	case []any:
		return t == "array"
	default:
		return t == "object"
	}
}
