package projector

import (
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
)

type recordName = aggregate.Key

// Every name of an effect leads to it, and so it stays when it has left the live
// state.
func TestLookups(t *testing.T) {
	w := newWorld(t)
	id := w.settled()
	e := w.state.Effect(id)
	p := fresh(t)
	apply(t, p, w.entries...)
	name := Name{Tenant: "main", RunID: e.Prepared.Context.RunID, CausalID: e.Prepared.Context.CausalID}
	check := func(events_ int) {
		t.Helper()
		for what, look := range map[string]func() (events.EffectID, error){
			"name":            func() (events.EffectID, error) { return p.EffectOfName(name) },
			"intent":          func() (events.EffectID, error) { return p.EffectOfIntent(e.IntentSHA256()) },
			"idempotency key": func() (events.EffectID, error) { return p.EffectOfIdempotencyKey(e.Prepared.Binding.IdempotencyKey) },
		} {
			if got, err := look(); got != id || err != nil {
				t.Errorf("%s: %q, %v", what, got, err)
			}
		}
		if n, err := p.NameOf(id); n != name || err != nil {
			t.Errorf("%+v, %v", n, err)
		}
		at, err := p.Positions(id, events.Position{})
		if err != nil || len(at) != events_ || at[0] != (events.Position{Seq: 4}) || at[len(at)-1] != p.State().Head().Last {
			t.Errorf("%v, %v", at, err)
		}
	}
	check(5)
	w.at = w.at.Add(200 * time.Hour)
	w.must(aggregate.Collect{Limit: 10})
	apply(t, p, w.entries[len(w.entries)-1])
	check(6)
	if got, err := p.EffectOfIntent("none"); got != "" || err != nil {
		t.Error(got, err)
	}
	if n, err := p.NameOf("none"); n != (Name{}) || err != nil {
		t.Error(n, err)
	}
}

// Names of any bytes do not run into each other.
func TestNamesAreApart(t *testing.T) {
	seen := map[string]bool{}
	for _, names := range [][]string{{"a", "b"}, {"ab", ""}, {"", "ab"}, {"a\x00b"}, {"a", "\x00b"}, {"a\x01b", ""}, {"a", "b", ""}, {"a"}} {
		key := string(keyOf('X', names...))
		if seen[key] {
			t.Errorf("%q", names)
		}
		seen[key] = true
	}
	n := Name{"t", "r\x00", "\x01c"}
	if got, err := readName(n.value()); got != n || err != nil {
		t.Error(got, err)
	}
	for _, bad := range []string{"", "\x02a", "\x01a\x01b", "\x01a\x01b\x01cx", "\xff"} {
		if _, err := readName([]byte(bad)); err == nil {
			t.Errorf("%q is a name", bad)
		}
	}
}
