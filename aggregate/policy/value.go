package policy

import (
	"math"
	"strconv"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/effectd/effectd/events"
)

// Cedar knows no null and no floating point. Null members are left out; a number
// that is no integer is a decimal when it has at most four digits after the
// point, else its text.

// valueOf is a JSON value as Cedar has it; false for null and for what is no
// JSON value.
func valueOf(v any) (types.Value, bool) {
	switch v := v.(type) {
	case bool:
		return types.Boolean(v), true
	case string:
		return types.String(v), true
	case int64:
		return types.Long(v), true
	case float64:
		return numberOf(v)
	case []any:
		items := make([]types.Value, 0, len(v))
		for _, item := range v {
			if value, ok := valueOf(item); ok {
				items = append(items, value)
			}
		}
		return types.NewSet(items...), true
	case map[string]any:
		return recordOf(v), true
	default:
		return nil, false
	}
}

func recordOf(m map[string]any) types.Record {
	out := make(types.RecordMap, len(m))
	for name, v := range m {
		if value, ok := valueOf(v); ok {
			out[types.String(name)] = value
		}
	}
	return types.NewRecord(out)
}

func numberOf(f float64) (types.Value, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, false
	}
	if f == math.Trunc(f) && math.Abs(f) <= float64(events.MaxAmount) {
		return types.Long(f), true
	}
	if d, err := types.ParseDecimal(decimalText(f)); err == nil {
		return d, true
	}
	return types.String(events.CanonicalOf(f)), true
}

// decimalText is the shortest text of a number without an exponent. A Cedar
// decimal takes it if it has one to four digits after the point.
func decimalText(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
