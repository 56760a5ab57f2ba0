package events

import (
	"encoding"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// The fields of every event type stand in the order of their JSON names, so
// that encoding them in order is encoding them in canonical form. That halves
// the cost of the hot path. It is checked here for every type that is encoded,
// once: a type that is not so is correct too, only slower.

var orderedTypes sync.Map // reflect.Type → bool

// ordered reports whether encoding v in the order of its fields is canonical.
func ordered(v any) bool {
	t := reflect.TypeOf(v)
	if t == nil {
		return true
	}
	if known, ok := orderedTypes.Load(t); ok {
		return known.(bool)
	}
	is := orderedType(t)
	orderedTypes.Store(t, is)
	return is
}

var (
	textType    = reflect.TypeFor[encoding.TextMarshaler]()
	rawType     = reflect.TypeFor[jsontext.Value]()
	amountsType = reflect.TypeFor[Amounts]()
	dataType    = reflect.TypeFor[Data]()
)

func orderedType(t reflect.Type) bool {
	switch {
	case t == rawType, t == amountsType, t.Implements(textType):
		return true // units are ASCII: byte order is the order of RFC 8785
	case t == dataType:
		for _, d := range Types() {
			if !ordered(d) {
				return false
			}
		}
		return true
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint64:
		return true
	case reflect.Pointer, reflect.Slice:
		return orderedType(t.Elem())
	case reflect.Struct:
		return orderedStruct(t)
	}
	return false
}

func orderedStruct(t reflect.Type) bool {
	last := ""
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name <= last || !orderedType(f.Type) {
			return false
		}
		last = name
	}
	return true
}
