package events

import (
	"cmp"
	"encoding"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Half of what the ledger does is to encode records of its own. So each of their
// types gets an encoder that appends the canonical form in one pass, put together
// once from the type's fields in the order of their names. It writes what the
// JSON library writes in two passes, which a test compares; a type with anything
// that is not known here is left to the library.

// encoder appends the canonical form of a value of one type.
type encoder func(dst []byte, v reflect.Value) ([]byte, error)

var encoders sync.Map // reflect.Type → encoder, nil for the library's types

// encoderOf returns the encoder of a type, nil if that is left to the library.
func encoderOf(t reflect.Type) encoder {
	if known, ok := encoders.Load(t); ok {
		return known.(encoder)
	}
	e := makeEncoder(t, nil)
	encoders.Store(t, e)
	return e
}

var (
	rawType      = reflect.TypeFor[Raw]()
	dataType     = reflect.TypeFor[Data]()
	instantType  = reflect.TypeFor[Instant]()
	positionType = reflect.TypeFor[Position]()
	amountsType  = reflect.TypeFor[Amounts]()
	ownForms     = []reflect.Type{reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.MarshalerTo]()}
)

// makeEncoder builds the encoder of a type within the types that hold it.
func makeEncoder(t reflect.Type, within []reflect.Type) encoder {
	switch t {
	case rawType:
		return encodeRaw
	case dataType:
		return encodeData
	case instantType:
		return encodeInstant
	case positionType:
		return encodePosition
	case amountsType:
		return encodeAmounts
	}
	if slices.Contains(within, t) || hasOwnForm(t) {
		return nil
	}
	within = append(slices.Clip(within), t)
	switch t.Kind() {
	case reflect.String:
		return encodeString
	case reflect.Bool:
		return encodeBool
	case reflect.Int, reflect.Int64:
		return encodeInt
	case reflect.Uint64:
		return encodeUint
	case reflect.Pointer:
		return pointerEncoder(makeEncoder(t.Elem(), within))
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			return sliceEncoder(makeEncoder(t.Elem(), within))
		}
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !hasOwnForm(t.Key()) {
			return mapEncoder(makeEncoder(t.Elem(), within))
		}
	case reflect.Struct:
		return structEncoder(t, within)
	}
	return nil
}

// hasOwnForm reports whether a type says itself how it is encoded.
func hasOwnForm(t reflect.Type) bool {
	return slices.ContainsFunc(ownForms, func(f reflect.Type) bool { return t.Implements(f) || reflect.PointerTo(t).Implements(f) })
}

func encodeRaw(dst []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return append(dst, "null"...), nil
	}
	raw := v.Bytes()
	if plain(raw) {
		return append(dst, raw...), nil
	}
	return jsontext.AppendFormat(dst, raw, canonicalText, jsontext.AllowInvalidUTF8(true))
}

// encodeAmounts is what the map encoder would do, without reflection.
func encodeAmounts(dst []byte, v reflect.Value) ([]byte, error) {
	amounts := v.Interface().(Amounts)
	var few [8]Unit
	units := few[:0]
	for u := range amounts {
		units = append(units, u)
	}
	slices.SortFunc(units, func(a, b Unit) int { return compareNames(string(a), string(b)) })
	dst = append(dst, '{')
	for i, u := range units {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(append(appendText(dst, string(u)), ':'), amounts[u], 10)
	}
	return append(dst, '}'), nil
}

// encodeData encodes the data of whatever event it is.
func encodeData(dst []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return append(dst, "null"...), nil
	}
	v = v.Elem()
	return encoderOf(v.Type())(dst, v) // every type of the sum has one
}

func encodeInstant(dst []byte, v reflect.Value) ([]byte, error) {
	dst, err := Instant(v.Int()).AppendText(append(dst, '"'))
	return append(dst, '"'), err
}

func encodePosition(dst []byte, v reflect.Value) ([]byte, error) {
	dst = Position{Seq: v.Field(0).Uint(), Index: int(v.Field(1).Int())}.append(append(dst, '"'))
	return append(dst, '"'), nil
}

func encodeString(dst []byte, v reflect.Value) ([]byte, error) {
	return appendText(dst, v.String()), nil
}

func encodeBool(dst []byte, v reflect.Value) ([]byte, error) {
	return strconv.AppendBool(dst, v.Bool()), nil
}

func encodeInt(dst []byte, v reflect.Value) ([]byte, error) {
	return strconv.AppendInt(dst, v.Int(), 10), nil
}

func encodeUint(dst []byte, v reflect.Value) ([]byte, error) {
	return strconv.AppendUint(dst, v.Uint(), 10), nil
}

func pointerEncoder(elem encoder) encoder {
	if elem == nil {
		return nil
	}
	return func(dst []byte, v reflect.Value) ([]byte, error) {
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		return elem(dst, v.Elem())
	}
}

func sliceEncoder(elem encoder) encoder {
	if elem == nil {
		return nil
	}
	return func(dst []byte, v reflect.Value) (_ []byte, err error) {
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = elem(dst, v.Index(i)); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	}
}

func mapEncoder(elem encoder) encoder {
	if elem == nil {
		return nil
	}
	return func(dst []byte, v reflect.Value) (_ []byte, err error) {
		type member struct {
			name  string
			value reflect.Value
		}
		var few [8]member
		members := few[:0]
		for i := v.MapRange(); i.Next(); {
			members = append(members, member{i.Key().String(), i.Value()})
		}
		slices.SortFunc(members, func(a, b member) int { return compareNames(a.name, b.name) })
		dst = append(dst, '{')
		for i, m := range members {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = elem(append(appendText(dst, m.name), ':'), m.value); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	}
}

// compareNames is the order of RFC 8785: by UTF-16 code units. That is the order
// of the bytes, but that surrogates stand before what is above them.
func compareNames(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if x, y := a[i], b[i]; x != y {
			if x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) {
				return cmp.Compare(y, x)
			}
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(len(a), len(b))
}
