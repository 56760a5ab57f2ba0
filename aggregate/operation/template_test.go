package operation

import (
	"reflect"
	"strings"
	"testing"
)

func TestSplitTemplate(t *testing.T) {
	lit := func(s string) piece { return piece{literal: s} }
	cel := func(s string) piece { return piece{source: s} }
	cases := []struct {
		in   string
		want []piece
	}{
		{"", nil},
		{"plain $ } {", []piece{lit("plain $ } {")}},
		{"a/${x}", []piece{lit("a/"), cel("x")}},
		{"${x}${ y }", []piece{cel("x"), cel("y")}},
		{"$${x}", []piece{lit("${x}")}},
		{"$$${x}", []piece{lit("$${x}")}},
		{`${{"a": {"b": 1}}["a"]}z`, []piece{cel(`{"a": {"b": 1}}["a"]`), lit("z")}},
		{`${"}" + '}'}!`, []piece{cel(`"}" + '}'`), lit("!")}},
		{`${"\"}"}`, []piece{cel(`"\"}"`)}},
		{`${r"\"}`, []piece{cel(`r"\"`)}},
		{`${bR'\'}`, []piece{cel(`bR'\'`)}},
		{`${var"}"}`, []piece{cel(`var"}"`)}},
		{`${"""a"}"""}`, []piece{cel(`"""a"}"""`)}},
		{`${'''}'''}`, []piece{cel(`'''}'''`)}},
		{"${x // }\n}", []piece{cel("x // }")}},
		{"é${x}é", []piece{lit("é"), cel("x"), lit("é")}},
	}
	for _, tc := range cases {
		got, err := splitTemplate(tc.in)
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%q: got %q, %v; want %q", tc.in, got, err, tc.want)
		}
	}
	for _, in := range []string{"${", "${x", "${\"}", "${'''}''", "${x // }", "${{}", "${}", "${  }", `${r'\}`} {
		if got, err := splitTemplate(in); err == nil {
			t.Errorf("%q: got %q, want an error", in, got)
		}
	}
}

// Pieces put together again are the template.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"account/${payload.account}", "$${x}", `${"}"}`, "${{}}", "${r'\\'}", "${'''"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		pieces, err := splitTemplate(s)
		if err != nil {
			return
		}
		var again strings.Builder
		for _, p := range pieces {
			if p.source == "" {
				again.WriteString(strings.ReplaceAll(p.literal, "${", "$${"))
			} else {
				again.WriteString("${" + p.source + "}")
			}
		}
		twice, err := splitTemplate(again.String())
		if err != nil || !reflect.DeepEqual(twice, pieces) {
			t.Fatalf("%q: %q became %q (%v)", s, pieces, twice, err)
		}
	})
}
