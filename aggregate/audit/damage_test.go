package audit_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/effectd/effectd/aggregate/audit"
	"github.com/effectd/effectd/events"
	"github.com/oklog/ulid/v2"
)

// damaged is a story whose log is changed by somebody who can write: everything
// is chained anew, unless the damage is to the chain.
type damaged struct {
	*story
	log   []events.Entry
	fresh uint64
}

func newDamaged() *damaged {
	d := &damaged{story: tell()}
	for i := range d.Entries {
		e := d.Entries[i].Entry
		e.Events = slices.Clone(e.Events)
		d.log = append(d.log, e)
	}
	return d
}

// chained numbers and chains all entries anew.
func (d *damaged) chained() []events.Stored {
	var out []events.Stored
	prev := events.ZeroDigest
	for i, e := range d.log {
		e.Seq, e.Prev = uint64(i+1), prev
		s := events.Seal(e)
		prev = s.SHA256
		out = append(out, s)
	}
	return out
}

// at is the place of the n-th event about an effect (or about none) whose data is
// a T.
func at[T events.Data](d *damaged, id events.EffectID, n int) (entry, index int) {
	for i := range d.log {
		for j := range d.log[i].Events {
			ev := &d.log[i].Events[j]
			if _, is := ev.Data.(T); is && ev.EffectID == id {
				if n--; n < 0 {
					return i, j
				}
			}
		}
	}
	panic("the story has no such event")
}

func position(entry, index int) events.Position {
	return events.Position{Seq: uint64(entry + 1), Index: index}
}

// edit changes the first event about an effect whose data is a T.
func edit[T events.Data](d *damaged, id events.EffectID, f func(*events.Event, *T)) events.Position {
	return editNth(d, id, 0, f)
}

func editNth[T events.Data](d *damaged, id events.EffectID, n int, f func(*events.Event, *T)) events.Position {
	i, j := at[T](d, id, n)
	ev := &d.log[i].Events[j]
	data := ev.Data.(T)
	f(ev, &data)
	ev.Data = data
	return position(i, j)
}

// drop takes an event out; it returns where the next one about the effect is.
func drop[T events.Data](d *damaged, id events.EffectID) events.Position {
	i, j := at[T](d, id, 0)
	d.log[i].Events = slices.Delete(d.log[i].Events, j, j+1)
	if len(d.log[i].Events) == 0 {
		d.log = slices.Delete(d.log, i, i+1)
		j = 0
	}
	for ; i < len(d.log); i, j = i+1, 0 {
		for ; j < len(d.log[i].Events); j++ {
			if d.log[i].Events[j].EffectID == id {
				return position(i, j)
			}
		}
	}
	return events.Position{}
}

// insert puts an event, as it would be written then, at the end of an entry.
func (d *damaged) insert(entry int, ev events.Event) events.Position {
	e := &d.log[entry]
	ev.V, ev.Time, ev.Type, ev.ID = events.Format, e.Time, ev.Data.Type(), events.EventID(d.id(e.Time))
	e.Events = append(e.Events, ev)
	return position(entry, len(e.Events)-1)
}

// id is a fresh id of a time.
func (d *damaged) id(t events.Instant) string {
	d.fresh++
	var id ulid.ULID
	_ = id.SetTime(uint64(t.Time().UnixMilli()))
	binary.BigEndian.PutUint64(id[8:], 1<<62+d.fresh)
	return id.String()
}

// again writes an event a second time, in the same entry, under a fresh id.
func again[T events.Data](d *damaged, id events.EffectID) events.Position {
	i, j := at[T](d, id, 0)
	return d.insert(i, d.log[i].Events[j])
}

// damage is one way to change a log, and where it must be found.
type damage struct {
	name string
	code audit.Code
	do   func(*damaged) events.Position
}

// TestDamageIsFound: the first finding is the right one, at the right place (U3).
func TestDamageIsFound(t *testing.T) {
	for _, c := range slices.Concat(entryDamage, bindingDamage, authorityDamage, lawDamage, admissionDamage, resultDamage, orderDamage) {
		t.Run(c.name, func(t *testing.T) {
			d := newDamaged()
			want := c.do(d)
			found(t, audited(d.chained()).First, c.code, want)
		})
	}
}

func found(t *testing.T, got *audit.Finding, code audit.Code, where events.Position) {
	t.Helper()
	switch {
	case got == nil:
		t.Errorf("not found, want %s at %s", code, where)
	case got.Code != code || got.Position != where:
		t.Errorf("%s at %s (%s), want %s at %s", got.Code, got.Position, got.Message, code, where)
	}
}

// TestBrokenChainsAreFound: damage by who cannot write, or did not chain anew.
func TestBrokenChainsAreFound(t *testing.T) {
	entries := tell().Entries
	n := len(entries)
	for _, c := range []struct {
		name  string
		code  audit.Code
		where uint64
		log   []events.Stored
	}{
		{"an entry is missing", audit.SequenceGap, 7, slices.Concat(entries[:5], entries[6:])},
		{"an entry is there twice", audit.SequenceGap, 5, slices.Concat(entries[:5], entries[4:])},
		{"two entries are swapped", audit.SequenceGap, 6, slices.Concat(entries[:4], entries[5:6], entries[4:5], entries[6:])},
		{"the first entry is missing", audit.SequenceGap, 2, entries[1:]},
		{"an entry is of another time of writing", audit.ChainBroken, 7, slices.Concat(entries[:5], resealed(entries[5], func(e *events.Entry) { e.Writer = "W2" }), entries[6:])},
		{"an entry is renumbered over a gap", audit.ChainBroken, 6, slices.Concat(entries[:5], resealed(entries[6], func(e *events.Entry) { e.Seq = 6 }))},
		{"the last entry is another", audit.ChainBroken, uint64(n), slices.Concat(entries[:n-1], resealed(entries[n-1], func(e *events.Entry) { e.Prev = events.ZeroDigest }))},
	} {
		t.Run(c.name, func(t *testing.T) { found(t, audited(c.log).First, c.code, events.Position{Seq: c.where}) })
	}
}

func resealed(s events.Stored, f func(*events.Entry)) []events.Stored {
	e := s.Entry
	f(&e)
	return []events.Stored{events.Seal(e)}
}

// TestForeignBytesAreFound: what no writer writes is a finding, and the audit goes
// on behind it.
func TestForeignBytesAreFound(t *testing.T) {
	entries := tell().Entries
	for _, c := range []struct {
		name string
		code audit.Code
		body []byte
	}{
		{"no JSON", audit.CorruptEntry, []byte("{")},
		{"not canonical", audit.CorruptEntry, append([]byte(" "), entries[3].Body...)},
		{"another version", audit.UnknownVersion, events.Seal(events.Entry{V: 2, Seq: 4, Events: entries[3].Events, Time: entries[3].Time}).Body},
	} {
		a := audit.New()
		for i := range entries[:3] {
			a.Body(entries[i].Body)
		}
		a.Body(c.body)
		next := events.Seal(events.Entry{V: 1, LedgerID: entries[4].LedgerID, Seq: 5, Prev: events.DigestBytes(c.body), Time: entries[4].Time, Events: entries[4].Events})
		a.Body(next.Body)
		r := a.Report()
		found(t, r.First, c.code, events.Position{Seq: 4})
		if r.Rules[0].Violations != 0 || r.Rules[1].Violations != 0 {
			t.Errorf("%s: the chain behind it is good, but %+v", c.name, r.Rules[:2])
		}
	}
}

// TestWhatAnAuditCannotSee is what doc.go says of the log alone: without a signed
// head, nothing shows it.
func TestWhatAnAuditCannotSee(t *testing.T) {
	for name, do := range map[string]func(*damaged){
		"the end is cut off":   func(d *damaged) { d.log = d.log[:len(d.log)-4] },
		"a run's end":          func(d *damaged) { drop[events.RunCancelled](d, "") },
		"evidence":             func(d *damaged) { edit(d, d.sent, func(_ *event, s *events.Settled) { s.Evidence.Status = 201 }) },
		"a provider reference": func(d *damaged) { edit(d, d.sent, func(_ *event, s *events.Settled) { s.ProviderRef = "x" }) },
		"a measured cost": func(d *damaged) {
			edit(d, d.lost, func(_ *event, s *events.Settled) { s.Cost = events.Amounts{"usd_cents": 1} })
		},
		"a dispatcher's outcome": func(d *damaged) {
			edit(d, d.lost, func(_ *event, s *events.Settled) { s.Outcome = events.OutcomeFailed })
		},
		"the digest of a request": func(d *damaged) {
			edit(d, d.sent, func(_ *event, p *events.Prepared) { p.RequestSHA256 = events.ZeroDigest })
		},
		"the digest of a nonce": func(d *damaged) {
			edit(d, d.sent, func(_ *event, c *events.Dispatched) { c.NonceSHA256 = events.ZeroDigest })
		},
		"the name of the program":  func(d *damaged) { edit(d, "", func(_ *event, o *events.LedgerOpened) { o.Program = "x" }) },
		"who wrote the last entry": func(d *damaged) { d.log[len(d.log)-1].Writer = "another" },
	} {
		d := newDamaged()
		do(d)
		if f := audited(d.chained()).First; f != nil {
			t.Errorf("%s: %+v, but doc.go says that it is not seen", name, *f)
		}
	}
}
