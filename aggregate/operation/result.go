package operation

import (
	"encoding/base64"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/effectd/effectd/events"
)

// What an expression may give, by place. A dynamic result is checked when it is
// there.
var (
	givesBool   = []types.Kind{types.BoolKind}
	givesAmount = []types.Kind{types.IntKind, types.UintKind, types.DoubleKind}
	givesText   = []types.Kind{types.StringKind, types.IntKind, types.UintKind, types.DoubleKind, types.BoolKind}
	givesJSON   = []types.Kind{types.StringKind, types.IntKind, types.UintKind, types.DoubleKind, types.BoolKind,
		types.NullTypeKind, types.ListKind, types.MapKind, types.BytesKind}
)

var (
	errNotText = errors.New("not text, a number or a boolean")
	errNotJSON = errors.New("not a JSON value")
)

// amountOf is the amount that a result states, false when it states none: not a
// number, not finite, not integral, negative, or above [events.MaxAmount].
func amountOf(v ref.Val) (int64, bool) {
	switch v := v.(type) {
	case types.Int:
		return int64(v), v >= 0 && int64(v) <= events.MaxAmount
	case types.Uint:
		return int64(v), uint64(v) <= uint64(events.MaxAmount)
	case types.Double:
		f := float64(v)
		if !(f >= 0 && f <= float64(events.MaxAmount)) || f != math.Trunc(f) {
			return 0, false
		}
		return int64(f), true
	default:
		return 0, false
	}
}

// textOf is how a result stands in a template.
func textOf(v ref.Val) (string, error) {
	switch v := v.(type) {
	case types.String:
		return string(v), nil
	case types.Int:
		return strconv.FormatInt(int64(v), 10), nil
	case types.Uint:
		return strconv.FormatUint(uint64(v), 10), nil
	case types.Bool:
		return strconv.FormatBool(bool(v)), nil
	case types.Double:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return "", errNotText
		}
		return string(events.CanonicalOf(float64(v))), nil
	default:
		return "", errNotText
	}
}

// jsonOf is a result as canonical JSON; bytes are base64.
func jsonOf(v ref.Val) (events.Raw, error) {
	native, err := nativeOf(v)
	if err != nil {
		return nil, err
	}
	return events.CanonicalOf(native), nil
}

func nativeOf(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.String:
		if !utf8.ValidString(string(v)) {
			return nil, errNotJSON
		}
		return string(v), nil
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(v), nil
	case types.Int:
		if int64(v) > events.MaxAmount || int64(v) < -events.MaxAmount {
			return nil, errNotJSON
		}
		return int64(v), nil
	case types.Uint:
		if uint64(v) > uint64(events.MaxAmount) {
			return nil, errNotJSON
		}
		return int64(v), nil
	case types.Double:
		if f := float64(v); math.IsNaN(f) || math.Abs(f) > float64(events.MaxAmount) {
			return nil, errNotJSON
		}
		return float64(v), nil
	case traits.Lister:
		return nativeList(v)
	case traits.Mapper:
		return nativeMap(v)
	default:
		return nil, errNotJSON
	}
}

func nativeList(l traits.Lister) (any, error) {
	out := []any{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		item, err := nativeOf(it.Next())
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

func nativeMap(m traits.Mapper) (any, error) {
	out := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok || !utf8.ValidString(string(name)) {
			return nil, errNotJSON
		}
		item, err := nativeOf(m.Get(key))
		if err != nil {
			return nil, err
		}
		out[string(name)] = item
	}
	return out, nil
}
