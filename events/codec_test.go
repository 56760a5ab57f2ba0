package events

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files of the current format version")

// sealRaw is a body around events that are encoded already, valid or not.
func sealRaw(encoded ...string) []byte {
	raw := make([][]byte, len(encoded))
	for i, e := range encoded {
		raw[i] = []byte(e)
	}
	return SealEncoded(sampleEntry(), raw).Body
}

// E2: the closed set of types is complete: every type is in Types, has its own
// decoder and a sample.
func TestTypes(t *testing.T) {
	listed := map[Type]bool{}
	for _, d := range Types() {
		if listed[d.Type()] {
			t.Errorf("%s is listed twice", d.Type())
		}
		listed[d.Type()] = true
		decode, ok := decoders[d.Type()]
		if !ok {
			t.Fatalf("%s has no decoder", d.Type())
		}
		got, err := decode(CanonicalOf(d))
		if err != nil || reflect.TypeOf(got) != reflect.TypeOf(d) {
			t.Errorf("%s decodes as %T, %v", d.Type(), got, err)
		}
	}
	for i, d := range sampleData {
		if d.Type() != Types()[i].Type() {
			t.Errorf("sample %d is %s, want %s", i, d.Type(), Types()[i].Type())
		}
		v := reflect.ValueOf(d)
		for f := range v.NumField() {
			if v.Field(f).IsZero() {
				t.Errorf("sample of %s leaves %s empty", d.Type(), v.Type().Field(f).Name)
			}
		}
	}
	if len(decoders) != len(listed) || len(sampleData) != len(listed) {
		t.Errorf("%d types, %d decoders, %d samples", len(listed), len(decoders), len(sampleData))
	}
}

// E1 for the zero data of every event.
func TestSealOpenIsIdentity(t *testing.T) {
	for i, d := range Types() {
		s := Seal(Entry{V: Format, LedgerID: "L", Seq: uint64(i + 1), Prev: ZeroDigest, Time: 1, Writer: "W",
			Events: []Event{{V: Format, ID: "E", Type: d.Type(), Time: 1, Tenant: "t", Actor: "t/p", Data: d}}})
		got, err := Open(s.Body)
		if err != nil {
			t.Fatalf("%s: %v\n%s", d.Type(), err, s.Body)
		}
		if again := Seal(got.Entry); again.SHA256 != s.SHA256 {
			t.Fatalf("%s: %s became %s", d.Type(), s.Body, again.Body)
		}
	}
}

// Every event of every format version ever written is still opened, to the
// same digest; today's code writes the golden files of today's version.
func TestGolden(t *testing.T) {
	zero := sampleEntry()
	for i, d := range Types() {
		zero.Events[i].Data = d
	}
	written := map[string][]byte{"entry": Seal(sampleEntry()).Body, "entry.zero": Seal(zero).Body}
	for _, d := range sampleData {
		e := sampleEvent(d)
		written[string(d.Type())] = CanonicalOf(&e)
	}
	for name, body := range written {
		file := filepath.Join("testdata", "golden", name+".v"+strconv.Itoa(Format)+".json")
		if *update {
			if err := os.WriteFile(file, body, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if golden, err := os.ReadFile(file); err != nil || !bytes.Equal(golden, body) {
			t.Errorf("%s: %v; a stored format may not change: add a version instead\n got %s\nwant %s", name, err, body, golden)
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.json"))
	if err != nil || len(files) < len(written) {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(filepath.Base(file), "entry.") {
			body = sealRaw(string(body))
		}
		s, err := Open(body)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if again := Seal(s.Entry); again.SHA256 != DigestBytes(body) {
			t.Errorf("%s: opened to another digest", file)
		}
		if want, _ := jcs(body); want != string(body) {
			t.Errorf("%s is not RFC 8785: %s", file, want)
		}
	}
}

// E2: what a reader does not know is an error; so is every other spelling.
func TestOpenRefuses(t *testing.T) {
	event := string(CanonicalOf(sampleEvent(TaskClosed{Reason: "x"})))
	good := string(sealRaw(event))
	if _, err := Open([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"unknown type":            strings.Replace(good, `"task-closed"`, `"task-reopened"`, 1),
		"unknown event version":   strings.Replace(good, `"type":"task-closed","v":1`, `"type":"task-closed","v":2`, 1),
		"unknown entry version":   strings.Replace(good, `"v":1,"writer"`, `"v":2,"writer"`, 1),
		"unknown entry member":    strings.Replace(good, `,"writer"`, `,"w":1,"writer"`, 1),
		"unknown event member":    strings.Replace(good, `,"tenant"`, `,"t":1,"tenant"`, 1),
		"unknown data member":     strings.Replace(good, `{"reason":"x"}`, `{"reason":"x","who":1}`, 1),
		"no data":                 strings.Replace(good, `"data":{"reason":"x"},`, ``, 1),
		"null data":               strings.Replace(good, `{"reason":"x"}`, `null`, 1),
		"wrong type":              strings.Replace(good, `{"reason":"x"}`, `{"reason":7}`, 1),
		"duplicate member":        strings.Replace(good, `{"reason":"x"}`, `{"reason":"x","reason":"x"}`, 1),
		"empty member":            strings.Replace(good, `{"reason":"x"}`, `{"reason":""}`, 1),
		"white space":             strings.Replace(good, `{"reason":"x"}`, `{"reason": "x"}`, 1),
		"other escape":            strings.Replace(good, `{"reason":"x"}`, `{"reason":"\u0078"}`, 1),
		"other order":             strings.Replace(good, `"tenant":"main","time":"2026-03-14T09:26:53.589793238Z"`, `"time":"2026-03-14T09:26:53.589793238Z","tenant":"main"`, 1),
		"other time zone":         strings.Replace(good, `53.589793238Z`, `53.589793238+00:00`, 1),
		"invalid UTF-8":           strings.Replace(good, `"x"`, "\"\xff\"", 1),
		"trailing text":           good + "\n",
		"truncated":               good[:len(good)-1],
		"no events":               string(sealRaw()),
		"empty":                   "",
		"integer beyond 2^53−1":   string(sealRaw(string(CanonicalOf(sampleEvent(OperationRetired{Version: MaxAmount + 2}))))),
		"unsorted raw member":     strings.Replace(string(Seal(sampleEntry()).Body), `{"account":"acct_1041","amount":1999,`, `{"amount":1999,"account":"acct_1041",`, 1),
		"duplicate in raw member": strings.Replace(string(Seal(sampleEntry()).Body), `{"account":"acct_1041",`, `{"account":"acct_1041","account":"acct_1041",`, 1),
	} {
		if bad == good {
			t.Errorf("%s: the test changes nothing", name)
		}
		if _, err := Open([]byte(bad)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// E1: decode(encode(x)) == x for events of any content, and the bytes are
// canonical by the independent implementation.
func TestSealOpenRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Entry{V: Format, LedgerID: LedgerID(rapid.String().Draw(t, "ledger")), Seq: rapid.Uint64Range(0, uint64(MaxAmount)).Draw(t, "seq"),
			Prev: digest("previous"), Time: 1, Writer: sampleWriter}
		for range rapid.IntRange(1, 3).Draw(t, "events") {
			var ev Event
			fill(t, reflect.ValueOf(&ev).Elem())
			d := reflect.New(reflect.TypeOf(rapid.SampledFrom(Types()).Draw(t, "type"))).Elem()
			fill(t, d)
			ev.V, ev.Data = Format, d.Interface().(Data)
			ev.Type = ev.Data.Type()
			e.Events = append(e.Events, ev)
		}
		s := Seal(e)
		got, err := Open(s.Body)
		if err != nil {
			t.Fatalf("%v\n%s", err, s.Body)
		}
		if again := Seal(got.Entry); !bytes.Equal(again.Body, s.Body) || !reflect.DeepEqual(again.Sizes, s.Sizes) || got.SHA256 != s.SHA256 {
			t.Fatalf("%s became %s", s.Body, again.Body)
		}
		if want, err := jcs(s.Body); err != nil || want != string(s.Body) {
			t.Fatalf("not RFC 8785, %v:\n got %s\nwant %s", err, s.Body, want)
		}
	})
}

// fill draws any value that the law lets stand in a field.
func fill(t *rapid.T, v reflect.Value) {
	switch v.Type() {
	case rawType:
		raw, err := Canonicalize([]byte(spelledJSON(t, 2)))
		if err != nil {
			t.Fatal(err)
		}
		v.SetBytes(raw)
		return
	case amountsType:
		if rapid.Bool().Draw(t, "nil") {
			return
		}
		v.Set(reflect.ValueOf(Amounts(rapid.MapOfN(rapid.Map(rapid.StringMatching(`[a-z0-9_-]{1,4}`), func(s string) Unit { return Unit(s) }),
			rapid.Int64Range(0, MaxAmount), 0, 4).Draw(t, "amounts"))))
		return
	case dataType:
		return
	}
	switch v.Interface().(type) {
	case Instant:
		v.SetInt(rapid.Int64Range(0, int64(at("2200-12-31T23:59:59.999999999Z"))).Draw(t, "instant"))
		return
	case Position:
		v.Set(reflect.ValueOf(Position{Seq: rapid.Uint64Range(0, uint64(MaxAmount)).Draw(t, "seq"), Index: rapid.IntRange(0, 255).Draw(t, "index")}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64Range(-MaxAmount, MaxAmount).Draw(t, "int"))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "present") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Slice:
		if rapid.Bool().Draw(t, "nil") {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 2).Draw(t, "len"), 2))
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	default:
		t.Fatalf("no generator for %s", v.Type())
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(Seal(sampleEntry()).Body)
	for _, d := range sampleData {
		e := sampleEvent(d)
		f.Add(sealRaw(string(CanonicalOf(&e))))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := Open(body)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("class of %v", err)
			}
			return
		}
		if again := Seal(s.Entry); !bytes.Equal(again.Body, body) || again.SHA256 != DigestBytes(body) {
			t.Fatalf("%s became %s", body, again.Body)
		}
	})
}

func TestPositionAndInstantText(t *testing.T) {
	for _, bad := range []string{"", "x", "1.", ".1", "1.2.3", "-1.0", "1.-1", "9007199254740992.0", "1 .0"} {
		if p, err := ParsePosition(bad); err == nil {
			t.Errorf("%q is %v", bad, p)
		}
	}
	if p, err := ParsePosition("1042.3"); err != nil || p.String() != "1042.3" || !(Position{1042, 2}).Less(p) || p.Less(Position{1042, 3}) {
		t.Errorf("%v %v", p, err)
	}
	for _, bad := range []string{"", "2026-01-01", "2026-01-01T00:00:00", "2026-01-01T00:00:00,5Z", "2026-01-01T1:00:00Z", "2026-01-01T00:00:00.1234567891Z",
		"1970-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2201-01-01T00:00:00Z", "2026-02-30T00:00:00Z"} {
		if i, err := ParseInstant(bad); err == nil {
			t.Errorf("%q is %v", bad, i)
		}
	}
	if i := at("2026-01-01T02:00:00.5+02:00"); i.String() != "2026-01-01T00:00:00.5Z" {
		t.Error(i)
	}
}
