package events

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// The examples of RFC 8785 and its corners, as far as SPEC 3 takes them.
func TestCanonicalize(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"numbers":[333333333.33333329,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`,
			`{"literals":[null,true,false],"numbers":[333333333.3333333,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`},
		{`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}"},
		{" \t\r\n[ 1 , 2 ]\n", `[1,2]`},
		{`-0`, `0`}, {`-0.0`, `0`}, {`0e999`, `0`}, {`1.0`, `1`}, {`1e-400`, `0`}, {`5e-324`, `5e-324`}, {`1E3`, `1000`}, {`1e-7`, `1e-7`}, {`0.000001`, `0.000001`},
		{`9007199254740991`, `9007199254740991`}, {`-9007199254740991`, `-9007199254740991`}, {`9007199254740991.0`, `9007199254740991`},
		{`90071992547409.91e2`, `9007199254740991`},
		{`"9007199254740993"`, `"9007199254740993"`}, {`"\\\"1e400"`, `"\\\"1e400"`}, {`"[[["`, `"[[["`},
		{nested(MaxDepth), nested(MaxDepth)},
	} {
		got, err := Canonicalize([]byte(c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", c.in, got, err, c.want)
		}
	}
}

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// SPEC 3: what input JSON is refused, and that the place is named.
func TestCanonicalizeRefuses(t *testing.T) {
	for _, c := range []struct{ in, what, at string }{
		{`{"a":{"b":1,"b":2}}`, "duplicate name", "/a/b"},
		{`{"a":1,"\u0061":2}`, "duplicate name", "/a"},
		{"{\"a\":\"\xff\"}", "invalid UTF-8", "/a"},
		{"{\"\xff\":1}", "invalid UTF-8", ""},
		{"\"\xed\xa0\x80\"", "invalid UTF-8", ""},
		{`{"a":"\ud800"}`, "surrogate", "/a"},
		{`"\udc00\ud800"`, "surrogate", ""},
		{`"\ud800x"`, "surrogate", ""},
		{`{"a":[0,1e400]}`, "not finite", "/a/1"},
		{`-1e400`, "not finite", ""},
		{`{"a":9007199254740993}`, "integer beyond", "/a"},
		{`9007199254740992`, "integer beyond", ""},
		{`-9007199254740992`, "integer beyond", ""},
		{`{"x":"y","n":1e16}`, "integer beyond", "/n"},
		{`1e300`, "integer beyond", ""},
		{`9007199254740992.5`, "integer beyond", ""},
		{`0.1e18`, "integer beyond", ""},
		{nested(MaxDepth + 1), "nested deeper than 64", ""},
		{strings.Repeat(`{"a":`, MaxDepth+1) + "1" + strings.Repeat("}", MaxDepth+1), "nested deeper than 64", ""},
		{``, "truncated", ""}, {` `, "truncated", ""}, {`{`, "truncated", ""}, {`[1,]`, "malformed", ""}, {`1 2`, "malformed", ""},
		{`{"a":1}x`, "malformed", ""}, {`NaN`, "malformed", ""}, {`01`, "malformed", ""}, {`+1`, "malformed", ""}, {`1.`, "malformed", ""},
		{`1e`, "malformed", ""}, {`1-1e400`, "malformed", ""}, {`-`, "malformed", ""}, {`'a'`, "malformed", ""}, {"\ufeff1", "malformed", ""},
		{"\"\n\"", "malformed", ""}, {`"a`, "truncated", ""}, {`"\x"`, "escape", ""}, {`]`, "malformed", ""},
	} {
		_, err := Canonicalize([]byte(c.in))
		var fault *InvalidJSON
		if !errors.Is(err, ErrInvalidJSON) || !errors.As(err, &fault) {
			t.Errorf("%.40s: %v", c.in, err)
			continue
		}
		if !strings.Contains(fault.What, c.what) || c.at != "" && string(fault.At) != c.at {
			t.Errorf("%.40s: %q at %q, want %q at %q", c.in, fault.What, fault.At, c.what, c.at)
		}
	}
}

// Any valid input, however spelled, has the canonical form that an independent
// implementation gives it, and that form is a fixed point.
func TestCanonicalizeAgreesWithIndependentImplementation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := []byte(spelledJSON(t, 4))
		want, err := jcs(raw)
		if err != nil {
			t.Fatalf("generator: %v", err)
		}
		got, err := Canonicalize(raw)
		if err != nil || string(got) != want {
			t.Fatalf("%s\n got %s, %v\nwant %s", raw, got, err, want)
		}
		if again, err := Canonicalize(got); err != nil || string(again) != string(got) {
			t.Fatalf("not a fixed point: %s became %s, %v", got, again, err)
		}
	})
}

// spelledJSON is JSON in any spelling: whitespace, escapes, number forms, order.
func spelledJSON(t *rapid.T, depth int) string {
	space := func() string { return rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "space") }
	kind := rapid.IntRange(0, 6).Draw(t, "kind")
	if depth == 0 {
		kind %= 5
	}
	switch kind {
	case 0:
		return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "literal")
	case 1:
		return strconv.FormatInt(rapid.Int64Range(-MaxAmount, MaxAmount).Draw(t, "int"), 10)
	case 2:
		f := rapid.Float64Range(-float64(MaxAmount), float64(MaxAmount)).Draw(t, "float")
		return strconv.FormatFloat(f, rapid.SampledFrom([]byte("eEfg")).Draw(t, "form"), -1, 64)
	case 3, 4:
		return spelledString(t, rapid.String().Draw(t, "string"))
	case 5:
		var parts []string
		for range rapid.IntRange(0, 4).Draw(t, "elements") {
			parts = append(parts, space()+spelledJSON(t, depth-1)+space())
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	var parts []string
	for _, name := range rapid.SliceOfNDistinct(rapid.String(), 0, 5, rapid.ID[string]).Draw(t, "names") {
		parts = append(parts, space()+spelledString(t, name)+space()+":"+space()+spelledJSON(t, depth-1)+space())
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func spelledString(t *rapid.T, s string) string {
	var b strings.Builder
	escapeAll := rapid.Bool().Draw(t, "escape")
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\' || r < 0x20 || escapeAll && r < 0x10000:
			b.WriteString(`\u` + hex4(r))
		case escapeAll:
			b.WriteString(`\u` + hex4(0xd800+(r-0x10000)>>10) + `\u` + hex4(0xdc00+(r-0x10000)&0x3ff))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func hex4(r rune) string {
	s := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", 4-len(s)) + s
}

// Invalid UTF-8 in a string of ours must not stop the writer.
func TestCanonicalOfReplacesInvalidUTF8(t *testing.T) {
	if got := CanonicalOf(Evidence{Source: "a\xffb"}); string(got) != `{"source":"a`+"\ufffd"+`b"}` {
		t.Errorf("%s", got)
	}
}

// What is taken as it stands is what the library would have made of it.
func TestPlain(t *testing.T) {
	for _, text := range []string{`{}`, `[]`, `""`, `0`, `-1`, `999999999999999`, `true`, `null`, `{"":0,"a":[1,"~ ",{"b":false}],"aa":{}}`,
		strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)} {
		if !plain([]byte(text)) {
			t.Errorf("%s is plain", text)
		}
	}
	for _, text := range []string{``, ` 1`, `1 `, `1,`, `-`, `-0`, `00`, `01`, `1.0`, `1e3`, `1E3`, `9007199254740993`, `"\u0061"`, `"ä"`, "\"\x7f\"", "\"\n\"", `"`, `{`, `{"a"}`, `{"a":1,}`,
		`{"b":1,"a":2}`, `{"a":1,"a":2}`, `{a:1}`, `[1,]`, `[,1]`, `[1`, `nul`, `nullx`, `truefalse`, `{"a":1}{`, nested(MaxDepth + 1)} {
		if plain([]byte(text)) {
			t.Errorf("%s is not plain", text)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		raw := []byte(spelledJSON(t, 4))
		if len(raw) > 0 && rapid.Bool().Draw(t, "damage") {
			raw[rapid.IntRange(0, len(raw)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		if plain(raw) {
			checkPlain(t, raw)
		}
	})
}

func checkPlain(t rapid.TB, raw []byte) {
	if fault, _ := outOfBounds(raw, MaxDepth); fault != "" {
		t.Fatalf("%s: %s", raw, fault)
	}
	if want, err := jsontext.AppendFormat(nil, raw, canonicalText); err != nil || string(want) != string(raw) {
		t.Fatalf("%s is %s, %v", raw, want, err)
	}
}

func FuzzPlain(f *testing.F) {
	f.Add([]byte(`{"a":[1,-2,"x",{"b":null}],"c":true}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if plain(raw) {
			checkPlain(t, raw)
		}
	})
}

func FuzzCanonicalize(f *testing.F) {
	f.Add([]byte(`{"b":[1e3,-0,"\ud83d\ude00"],"a":9007199254740991}`))
	f.Add([]byte(nested(MaxDepth + 1)))
	f.Add([]byte("\"\xff\\ud800\""))
	f.Add([]byte(samplePayload))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := Canonicalize(raw)
		if err != nil {
			if !errors.Is(err, ErrInvalidJSON) {
				t.Fatalf("class of %v", err)
			}
			return
		}
		if again, err := Canonicalize(got); err != nil || string(again) != string(got) {
			t.Fatalf("not a fixed point: %s became %s, %v", got, again, err)
		}
		if want, err := jcs(raw); err != nil || want != string(got) {
			t.Fatalf("%s\n got %s\nwant %s, %v", raw, got, want, err)
		}
	})
}
