package projector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"
)

// pages reads a whole list; between pages it calls between.
func pages(t fataler, q *Queries, c aggregate.Caller, r wire.ListRequest, between func()) []*wire.Effect {
	var all []*wire.Effect
	for {
		body, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		page := ask[*wire.List[*wire.Effect]](t, q, c, wire.EffectList, string(body))
		all = append(all, page.Items...)
		if page.Cursor == "" {
			return all
		}
		if r.Limit > 0 && int64(len(page.Items)) > r.Limit {
			t.Fatalf("%d items", len(page.Items))
		}
		r.Cursor = page.Cursor
		between()
	}
}

// A list is complete, without duplicates and newest first, however it is paged
// and whatever is prepared meanwhile; with and without a store.
func TestListPages(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		w.grow(rt, 40-rapid.IntRange(0, 39).Draw(rt, "fewer"))
		p := open(rt, "p", vfs.NewMem())
		defer func() { _ = p.Close() }()
		apply(rt, p, w.entries...)
		q := queries(p, w)
		r := wire.ListRequest{Limit: int64(rapid.IntRange(1, 5).Draw(rt, "limit")),
			State:     rapid.SampledFrom(append(make([]string, 7), stateNames()...)).Draw(rt, "state"),
			Operation: rapid.SampledFrom([]events.OperationName{"", "", "", "", "charge", "pay"}).Draw(rt, "operation"),
			TaskID:    rapid.SampledFrom([]events.TaskID{"", "", "", "", "root", w.someTask(rt)}).Draw(rt, "task")}
		for _, bound := range []*string{&r.Since, &r.Until} {
			if rapid.Bool().Draw(rt, "bound") {
				at := w.entries[len(w.entries)-1-rapid.IntRange(0, len(w.entries)-1).Draw(rt, "back")].Time
				*bound = at.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 500_000}).Draw(rt, "ns"))).String()
			}
		}
		c := rapid.SampledFrom([]aggregate.Caller{producer, rival, operator, auditor}).Draw(rt, "who")
		want := expected(w.state, c, r, w.at)
		if rapid.Bool().Draw(rt, "without a store") {
			p.fault.set(errors.New("no more"))
		}
		now := w.at
		p.opts.Now = func() events.Instant { return now }
		var got []events.EffectID
		for _, v := range pages(rt, q, c, r, func() {
			w.must(aggregate.ChangePolicy{Text: policyText + "// " + fmt.Sprint(w.ids) + "\n"})
			w.do(w.prepare(producer, "charge", "root", "r9", false))
			apply(rt, p, w.entries[p.State().Seq():]...)
		}) {
			if slices.Contains(want, v.EffectID) || !v.CreatedAt.Time().After(now.Time()) {
				got = append(got, v.EffectID)
			}
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("%+v for %s\ngot  %v\nwant %v", r, c.Actor(), got, want)
		}
	})
}

func stateNames() []string {
	var out []string
	for _, s := range wire.States() {
		out = append(out, string(s))
	}
	return out
}

// expected is a list without indexes.
func expected(s *aggregate.State, c aggregate.Caller, r wire.ListRequest, at events.Instant) []events.EffectID {
	var out []events.EffectID
	since, _ := events.ParseInstant(r.Since)
	until, _ := events.ParseInstant(r.Until)
	s.EachEffect(func(e *aggregate.Effect) bool {
		v := s.View(e, at)
		if (r.State == "" || string(v.State) == r.State) && (r.Operation == "" || v.Operation == r.Operation) && (r.TaskID == "" || v.TaskID == r.TaskID) &&
			v.CreatedAt >= since && (until == 0 || v.CreatedAt < until) && s.MaySee(c, e) {
			out = append(out, v.EffectID)
		}
		return true
	})
	slices.Reverse(out)
	return out
}

// Bounds of time are exact within the millisecond that ids tell.
func TestListBounds(t *testing.T) {
	w := newWorld(t)
	start := w.at
	var ids []events.EffectID
	for _, µs := range []int{300, 700, 1300} {
		w.at = start.Add(time.Duration(µs) * time.Microsecond)
		ids = append(ids, w.admitted())
	}
	_, q := shown(t, w)
	for _, c := range []struct {
		since, until int // µs; 0: none
		want         []events.EffectID
	}{
		{300, 0, ids}, {301, 0, ids[1:]}, {700, 0, ids[1:]}, {701, 0, ids[2:]}, {1301, 0, nil},
		{0, 300, nil}, {0, 301, ids[:1]}, {0, 700, ids[:1]}, {0, 701, ids[:2]}, {0, 1301, ids}, {301, 1300, ids[1:2]}, {700, 300, nil},
	} {
		r := wire.ListRequest{}
		if c.since > 0 {
			r.Since = start.Add(time.Duration(c.since) * time.Microsecond).String()
		}
		if c.until > 0 {
			r.Until = start.Add(time.Duration(c.until) * time.Microsecond).String()
		}
		var got []events.EffectID
		for _, v := range pages(t, q, producer, r, func() {}) {
			got = append(got, v.EffectID)
		}
		if slices.Reverse(got); !slices.Equal(got, c.want) {
			t.Errorf("[%d, %d): %v, want %v", c.since, c.until, got, c.want)
		}
	}
}

// A cursor goes on with its own question, of its own caller.
func TestCursorIsBound(t *testing.T) {
	w := newWorld(t)
	w.settled()
	w.settled()
	_, q := shown(t, w)
	first := ask[*wire.List[*wire.Effect]](t, q, producer, wire.EffectList, `{"limit":1,"state":"settled"}`)
	if first.Cursor == "" {
		t.Fatal("no cursor")
	}
	for who, body := range map[aggregate.Caller]string{producer: `{"limit":1,"cursor":%q}`, operator: `{"limit":1,"state":"settled","cursor":%q}`} {
		if refusal := refused(t, q, who, wire.EffectList, fmt.Sprintf(body, first.Cursor)); refusal.Field != "cursor" {
			t.Error(refusal)
		}
	}
	second := ask[*wire.List[*wire.Effect]](t, q, producer, wire.EffectList, fmt.Sprintf(`{"limit":7,"state":"settled","cursor":%q}`, first.Cursor))
	if len(second.Items) != 1 || second.Cursor != "" || second.Items[0].EffectID == first.Items[0].EffectID {
		t.Errorf("%+v", second)
	}
}

// What time has ended is listed as ended before the log says so, among what the
// log says.
func TestListShowsExpiry(t *testing.T) {
	w := newWorld(t)
	var ids []events.EffectID
	for _, op := range []events.OperationName{"pay", "charge", "pay", "charge", "pay"} {
		ids = append(ids, w.must(w.prepare(producer, op, "root", "r1", false))[0].EffectID)
	}
	w.must(aggregate.Withdraw{Caller: producer, EffectID: ids[2]})
	w.at = w.at.Add(11 * time.Minute)
	p := fresh(t)
	apply(t, p, w.entries...)
	q := queries(p, w)
	list := func(state wire.State) []events.EffectID {
		var out []events.EffectID
		for _, v := range pages(t, q, producer, wire.ListRequest{State: string(state), Limit: 2}, func() {}) {
			out = append(out, v.EffectID)
		}
		slices.Reverse(out)
		return out
	}
	for _, c := range []struct {
		at        time.Duration
		state     wire.State
		effects   []events.EffectID
		described string
	}{
		{0, wire.StatePrepared, []events.EffectID{ids[0], ids[4]}, "waiting"},
		{0, wire.StatePermitted, []events.EffectID{ids[1], ids[3]}, "permitted"},
		{0, wire.StateRefused, ids[2:3], "withdrawn"},
		{11 * time.Minute, wire.StateRefused, ids, "all ended"},
		{11 * time.Minute, wire.StatePrepared, nil, "nothing waits"},
		{11 * time.Minute, wire.StatePermitted, nil, "nothing is permitted"},
	} {
		p.opts.Now = func() events.Instant { return p.State().Head().Time.Add(c.at) }
		if got := list(c.state); !slices.Equal(got, c.effects) {
			t.Errorf("%s: %v", c.described, got)
		}
	}
}

// A page is bounded by what a message holds, not only by the limit.
func TestPageBytes(t *testing.T) {
	w := newWorld(t)
	var commands []aggregate.Command
	for range 40 {
		c := w.prepare(producer, "charge", "root", "r1", true).(aggregate.Prepare)
		service := strings.Repeat("s", 250)
		c.Request.Service = &service
		commands = append(commands, c)
	}
	w.must(commands...)
	_, q := shown(t, w)
	for _, size := range []int64{1, 20_000} {
		p := newPage(w.state, &filter{caller: producer}, 500, func(e *aggregate.Effect) (*wire.Effect, int64) { return w.state.View(e, w.at), e.Size })
		p.bytes = pageBytes - size
		newestLive(w.state, "", p.take)
		if len(p.Items) == 0 || len(p.Items) == 40 || p.Cursor == "" {
			t.Errorf("%d left: %d items, cursor %q", size, len(p.Items), p.Cursor)
		}
	}
	if got := pages(t, q, producer, wire.ListRequest{Limit: 500}, func() {}); len(got) != 40 {
		t.Errorf("%d items", len(got))
	}
}

// P4: a list is of one position, also while entries are applied.
func TestListWhileApplying(t *testing.T) {
	w := newWorld(t)
	p := fresh(t)
	apply(t, p, w.entries...)
	q := queries(p, w)
	start := len(w.entries)
	for range 60 {
		id := w.admitted()
		w.must(w.claim(id))
	}
	folds := map[uint64]*aggregate.State{}
	for n := start; n <= len(w.entries); n++ {
		folds[uint64(n)] = w.fold(uint64(n))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, e := range w.entries[start:] {
			if err := p.Apply(context.Background(), e); err != nil {
				t.Error(err)
			}
		}
	}()
	check := func() {
		for _, state := range []wire.State{wire.StateAdmitted, wire.StateDispatched} {
			got := ask[*wire.List[*wire.Effect]](t, q, producer, wire.EffectList, fmt.Sprintf(`{"state":%q,"limit":500}`, state))
			want := expected(folds[got.Position.Seq], producer, wire.ListRequest{State: string(state)}, folds[got.Position.Seq].Head().Time)
			var ids []events.EffectID
			for _, v := range got.Items {
				ids = append(ids, v.EffectID)
				if v.Position != got.Position {
					t.Error("an effect of another position")
				}
			}
			if !slices.Equal(ids, want) {
				t.Errorf("at %s: got %v, want %v", got.Position, ids, want)
			}
		}
	}
	for {
		select {
		case <-done:
			check()
			return
		default:
			check()
		}
	}
}
