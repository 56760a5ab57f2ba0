package events

import (
	"reflect"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// byLibrary is the canonical form as the JSON library writes it, in two passes.
func byLibrary(t rapid.TB, v any) string {
	b, err := json.Marshal(v, canonicalValues)
	if err == nil {
		b, err = jsontext.AppendFormat(nil, b, canonicalText)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// All that an encoder can meet, in an order that is not the canonical one.
type assorted struct {
	Z     string           `json:"z"`
	Inner                  // its members are members here
	A     *Inner           `json:"a,omitzero"`
	B     *Inner           `json:"b"`
	C     []Inner          `json:"c"`
	D     map[string]Inner `json:"d,omitempty"`
	E     map[Unit]int64   `json:"e"`
	F     []string         `json:"f,omitempty"`
	G     Instant          `json:"g,omitzero"`
	H     Position         `json:"h,omitzero"`
	I     uint64           `json:"ä"`
	J     Raw              `json:"\ue000"`
	K     Raw              `json:"😀,omitzero"`
	L     Inner            `json:"l,omitzero"`
}

type Inner struct {
	Y    bool     `json:"y"`
	X    int64    `json:"x,omitzero"`
	When Instant  `json:"when"`
	At   Position `json:"at"`
}

// Every type of the log has an encoder, and it writes what the library does.
func TestEncoderAgreesWithLibrary(t *testing.T) {
	types := []reflect.Type{reflect.TypeFor[Event](), reflect.TypeFor[Binding](), reflect.TypeFor[Receipt]()}
	for _, d := range Types() {
		types = append(types, reflect.TypeOf(d))
	}
	for _, typ := range types {
		if encoderOf(typ) == nil || encoderOf(reflect.PointerTo(typ)) == nil {
			t.Errorf("%s has no encoder", typ)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		v := reflect.New(rapid.SampledFrom(types).Draw(t, "type"))
		fill(t, v.Elem())
		if e, ok := v.Interface().(*Event); ok {
			d := reflect.New(rapid.SampledFrom(types[3:]).Draw(t, "data")).Elem()
			fill(t, d)
			e.Data = d.Interface().(Data)
		}
		want := byLibrary(t, v.Interface())
		if got := string(CanonicalOf(v.Interface())); got != want {
			t.Fatalf("\n got %s\nwant %s", got, want)
		}
		if got := string(CanonicalOf(v.Elem().Interface())); got != want {
			t.Fatalf("as a value:\n got %s\nwant %s", got, want)
		}
	})
}

func TestEncoderOfAnyShape(t *testing.T) {
	inner := Inner{Y: true, X: -1 << 40, When: 1, At: Position{Seq: 1 << 50, Index: 7}}
	for _, v := range []assorted{
		{},
		{Z: "\" \\ \n \x01 \u2028 </script> \x7f ä 😀", Inner: inner, A: &inner, B: &inner, C: []Inner{inner, {}}, D: map[string]Inner{"b": {}, "a": inner},
			E: map[Unit]int64{"\ue000": 1, "😀": 2, "z": 3, "": 4, "zz": 5, "\ud7ff": 6, "\U0010ffff": 7, "\uffff": 8, "\uf000": 9}, F: []string{""}, G: 1, H: Position{Index: 1},
			I: 1<<53 - 1, J: Raw(` {"b" : [1e2, {"d":1,"c":2}], "a":"\u00e4"} `), K: Raw("null"), L: inner},
		{C: []Inner{}, D: map[string]Inner{}, E: map[Unit]int64{}, F: []string{}, J: Raw("1")},
	} {
		if encoderOf(reflect.TypeOf(v)) == nil {
			t.Fatal("no encoder")
		}
		if got, want := string(CanonicalOf(&v)), byLibrary(t, &v); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
	if _, err := appendCanonical(nil, struct {
		R Raw `json:"r"`
	}{Raw("{")}); err == nil {
		t.Error("a raw value that is none was encoded")
	}
}

// What the encoders do not know is the library's.
func TestLeftToLibrary(t *testing.T) {
	type cycle struct {
		Next *cycle `json:"next,omitzero"`
	}
	for _, v := range []any{
		map[string]any{"\ufb33": 1.5, "😀": Raw(`{"b":1,"a":2}`)},
		struct {
			B []byte `json:"b"`
		}{[]byte("x")},
		struct {
			F float64 `json:"f"`
		}{1e21},
		struct {
			S string `json:"s,case:ignore"`
		}{"s"},
		struct {
			Inner
			X int64 `json:"x"` // hides that of Inner
		}{X: 5},
		cycle{&cycle{}},
		any(nil),
	} {
		if v != nil && encoderOf(reflect.TypeOf(v)) != nil {
			t.Errorf("%T has an encoder", v)
		}
		if got, want := string(CanonicalOf(v)), byLibrary(t, v); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
}

// The order of names is that of the independent implementation.
func TestCompareNames(t *testing.T) {
	names := []string{"", "a", "aa", "b", "\u007f", "\u0080", "ä", "\u07ff", "\u0800", "\ud7ff", "😀", "\U0010ffff", "\ue000", "\uf8ff", "\uffff", "a😀", "a\ue000"}
	for _, a := range names {
		for _, b := range names {
			if (compareNames(a, b) < 0) != lessUTF16(a, b) {
				t.Errorf("%q and %q", a, b)
			}
		}
	}
	if !slices.IsSortedFunc([]string{"\ud7ff", "😀", "\ue000"}, compareNames) {
		t.Error("surrogates stand before what is above them")
	}
}
