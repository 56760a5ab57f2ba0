package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/rehearsal"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

// The claim is in the log, and then in the anchor, before the send (D1).
func TestClaimThenAnchorThenSend(t *testing.T) {
	b := newBench(t)
	b.anchor = func(ctx context.Context, seq uint64, sha events.Digest) error {
		entries, err := b.log.Read(ctx, seq, 1)
		if err != nil || len(entries) != 1 || entries[0].SHA256 != sha {
			t.Errorf("marked entry %d, %s: %v", seq, sha, err)
			return nil
		}
		b.says("marked " + string(entries[0].Events[0].Type))
		return nil
	}
	b.dispatches()
	b.settles(b.submits("charge", "1"))
	b.said("marked "+string(events.TypeDispatched), "fired charge")
}

// Without the anchor nothing is sent, and nothing is claimed any more; that nothing
// was sent is proven, and kept (D1, D5).
func TestAnchorFails(t *testing.T) {
	b := newBench(t)
	b.anchor = func(context.Context, uint64, events.Digest) error { return errors.New("no disk") }
	_, stop := b.dispatches()
	id := b.submits("charge", "1")
	b.eventually("the result is spooled", func() bool { return b.spool.Len() == 1 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if reason := b.ledger.Distrusted(); !strings.Contains(reason, "anchor") {
		t.Fatalf("trusted, or for another reason: %q", reason)
	}
	records, _, err := b.spool.All()
	if err != nil || len(records) != 1 || records[0].EffectID != id || !strings.Contains(string(records[0].Result), `"no_effect"`) {
		t.Fatalf("%+v %v", records, err)
	}
	b.said()
}

// A stop does not end the wait for the anchor: that would look like an anchor that
// cannot be written.
func TestStopDuringMark(t *testing.T) {
	b := newBench(t)
	b.anchor = func(ctx context.Context, _ uint64, _ events.Digest) error {
		if ctx.Done() != nil {
			return errors.New("the mark can be cancelled")
		}
		return nil
	}
	b.dispatches()
	b.settles(b.submits("charge", "1"))
	if reason := b.ledger.Distrusted(); reason != "" {
		t.Fatal(reason)
	}
}

// The deadline counts from before the claim was asked for, whatever claim and
// anchor take (D3).
func TestDeadlineIsFromBeforeTheClaim(t *testing.T) {
	b := newBench(t)
	asked := b.time()
	b.log.Before = func(e events.Stored) error {
		if e.Events[0].Type == events.TypeDispatched {
			b.pass(300 * time.Millisecond)
		}
		return nil
	}
	b.anchor = func(context.Context, uint64, events.Digest) error { b.pass(300 * time.Millisecond); return nil }
	deadlines := make(chan time.Time, 1)
	b.fire = func(_ context.Context, _ Send, deadline time.Time) aggregate.Result {
		deadlines <- deadline
		return proven()
	}
	b.dispatches()
	b.submits("charge", "1")
	if got, want := take(t, "the send", deadlines), asked.Add(2*time.Second); !got.Equal(want) {
		t.Fatalf("the deadline is %s after the claim was asked for, want 2 s", got.Sub(asked))
	}
}

// What a send may be refused for is found out before the claim (D4).
func TestNotSendable(t *testing.T) {
	rewrite := func(f func(*events.Binding)) func(*bench) {
		return func(b *bench) { b.rewritesPrepared(func(p *events.Prepared) { f(&p.Binding) }) }
	}
	for name, c := range map[string]struct {
		prepare func(*bench)
		says    string
	}{
		"another program's adapter": {rewrite(func(b *events.Binding) { b.Adapter.Build = "http/0" }), "http/0"},
		"no such adapter":           {func(b *bench) { b.cfg.Adapters = nil }, "no adapter of kind http"},
		"it does not render":        {func(b *bench) { b.cfg.Adapters = map[string]Adapter{"http": unrenderable{}} }, "unrenderable"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			d := b.world.Do(rehearsal.Prepare(rehearsal.Producer, "wire", `{"account":"a","amount":100}`, "run", "1"))
			c.prepare(b)
			b.appends(b.world.Entries[len(b.world.Entries)-1])
			b.world.Do(b.world.Approve(rehearsal.Approver, d.EffectID))
			b.appends(b.world.Entries[len(b.world.Entries)-1])
			b.world.Do(b.world.Admit(rehearsal.Producer, d.EffectID))
			b.appends(b.world.Entries[len(b.world.Entries)-1])
			b.catchesUp()
			b.dispatches()
			s := b.settles(d.EffectID)
			if s.Outcome != events.OutcomeNoEffect || s.Reason != events.ReasonUnsendable || !strings.Contains(s.Evidence.Detail, c.says) {
				t.Fatalf("%+v", s)
			}
			if b.effect(d.EffectID).Claim != nil {
				t.Fatal("it was claimed")
			}
			b.said()
		})
	}
}

type unrenderable struct{}

func (unrenderable) Render(Send) (Shot, error) { return nil, errors.New("unrenderable") }

// An admission that does not commit to what is prepared ends all trust, and nothing
// is sent for it.
func TestForgedAdmission(t *testing.T) {
	b := newBench(t)
	d := b.world.Do(rehearsal.Submit(rehearsal.Producer, "charge", `{"account":"a","amount":100}`, "run", "1"))
	b.rewritesPrepared(func(p *events.Prepared) { p.Payload = events.Raw(`{"account":"a","amount":1}`) })
	b.appends(b.world.Entries[len(b.world.Entries)-1])
	b.catchesUp()
	_, stop := b.dispatches()
	b.eventually("trust ends", func() bool { return b.ledger.Distrusted() != "" })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if reason := b.ledger.Distrusted(); !strings.Contains(reason, string(d.EffectID)) || !strings.Contains(reason, "payload_sha256") {
		t.Fatal(reason)
	}
	b.said()
}

// An adapter that panics proves nothing, and takes nothing else down (D4).
func TestAdapterPanics(t *testing.T) {
	b := newBench(t)
	b.fire = func(_ context.Context, s Send, _ time.Time) aggregate.Result {
		if s.Binding.Operation == "charge" {
			panic("adapter")
		}
		return proven()
	}
	b.dispatches()
	id := b.submits("charge", "1")
	b.eventually("it is unknown", func() bool { return b.effect(id).State == wire.StateUnknown })
	if u := b.effect(id).Unknown; u.Reason != events.ReasonAdapterError || !u.SendEnded {
		t.Fatalf("%+v", u)
	}
	b.settles(b.submits("note", "2"))
	b.said("fired charge", "fired note")
}

const secretive = `name: secretive
version: 1
input: {type: object}
resource: things
secrets: [TOKEN]
adapter: {kind: http, method: POST, url: "http://127.0.0.1:8099/things", headers: {Authorization: "Bearer ${secret.TOKEN}"}}
outcomes:
  - {when: response.status == 200, outcome: succeeded}
`

// The claim has the fingerprint of the credential, and no record has a value of it.
func TestCredential(t *testing.T) {
	b := newBench(t, secretive, strings.Replace(secretive, "name: secretive", "name: open", 1))
	b.does(events.SystemActor, aggregate.ChangePolicy{Text: `permit(principal, action == Action::"commit", resource);`})
	var token atomic.Pointer[string]
	b.cfg.Secret = func(string) (string, bool) { return *token.Load(), true }
	b.fire = func(context.Context, Send, time.Time) aggregate.Result {
		r := proven()
		r.ProviderRef = "for " + *token.Load()
		return r
	}
	b.dispatches()
	var fingerprints []events.Digest
	for i, value := range []string{"very-secret", "very-secret", "quite-secret"} {
		token.Store(&value)
		id := b.submits("secretive", events.CausalID(fmt.Sprint(i)))
		if s := b.settles(id); !strings.HasPrefix(s.ProviderRef, "for ") || strings.Contains(s.ProviderRef, value) {
			t.Fatalf("provider_ref %q", s.ProviderRef)
		}
		fingerprints = append(fingerprints, b.effect(id).Claim.CredentialSHA256)
	}
	if f := fingerprints; f[0] == "" || f[0] != f[1] || f[0] == f[2] {
		t.Fatalf("credentials %v", f)
	}
}

// Without room for its result nothing is claimed; when there is room it is.
func TestNoRoomForResults(t *testing.T) {
	b := newBench(t)
	slots := b.fillsSpool()
	warned := make(warnings, 64)
	b.cfg.Logger = warned.logger()
	b.dispatches()
	id := b.submits("charge", "1")
	for range 2 {
		for !strings.Contains(take(t, "a warning", warned), "no room") {
			continue
		}
	}
	if b.effect(id).Claim != nil {
		t.Fatal("it was claimed")
	}
	slots[0].Release()
	b.settles(id)
	b.said("fired charge")
}

// A claim that another won is the other's, also where ours was open before: nothing
// is sent or reported for it (D1, D2).
func TestAnotherWins(t *testing.T) {
	b := newBench(t)
	other := b.writes("another")
	var tries atomic.Int64
	var refuse error
	b.log.Before = func(e events.Stored) error {
		if e.Events[0].Type != events.TypeDispatched || e.Writer != "W" {
			return nil
		}
		if tries.Add(1) == 1 {
			return eventlog.ErrUnavailable // its nonce is kept
		}
		effect := e.Events[0].EffectID
		_, refuse = other.Do(context.Background(), events.SystemActor, aggregate.ClaimEffect{EffectID: effect, IntentSHA256: e.Events[0].IntentSHA256,
			Dispatcher: events.Dispatcher{Node: "another", Incarnation: "another"}, NonceSHA256: aggregate.DigestNonce("another's"), DeadlineMS: 1000})
		return nil
	}
	_, stop := b.dispatches()
	id := b.submits("charge", "1")
	b.eventually("it is claimed", func() bool { return b.effect(id).Claim != nil })
	if err := errors.Join(refuse, stop()); err != nil {
		t.Fatal(err)
	}
	if e := b.effect(id); e.State != wire.StateDispatched || e.Claim.Dispatcher.Node != "another" {
		t.Fatalf("%s %+v", e.State, e.Claim)
	}
	if b.spool.Len() != 0 {
		t.Fatal("something was reported for another's claim")
	}
	b.said()
}
