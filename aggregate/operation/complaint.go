package operation

import (
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// complaint says what a value does to a schema. It states what the schema wants
// and the names of members, never the value.
func complaint(e *jsonschema.ValidationError) string {
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return "missing " + quoteNames(k.Missing)
	case *kind.AdditionalProperties:
		return "unknown " + quoteNames(k.Properties)
	case *kind.DependentRequired:
		return "missing " + quoteNames(k.Missing)
	case *kind.Type:
		return "want " + strings.Join(k.Want, " or ")
	case *kind.Enum:
		return "not one of the allowed values"
	case *kind.Const:
		return "not the required value"
	case *kind.Minimum, *kind.ExclusiveMinimum:
		return "below the minimum"
	case *kind.Maximum, *kind.ExclusiveMaximum:
		return "above the maximum"
	case *kind.MinLength, *kind.MinItems, *kind.MinProperties:
		return "too short"
	case *kind.MaxLength, *kind.MaxItems, *kind.MaxProperties:
		return "too long"
	case *kind.Pattern:
		return "does not match the pattern"
	case *kind.FalseSchema:
		return "not allowed"
	}
	if path := e.ErrorKind.KeywordPath(); len(path) > 0 {
		return "does not satisfy " + path[0]
	}
	return "does not match the schema"
}

// quoteNames lists at most three names, in order, each at most 64 bytes.
func quoteNames(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	more := len(names) > 3
	if more {
		names = names[:3]
	}
	for i, name := range names {
		if len(name) > 64 {
			name = strings.ToValidUTF8(name[:64], "") + "…"
		}
		names[i] = strconv.Quote(name)
	}
	if more {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}
