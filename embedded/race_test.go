package embedded_test

import (
	"fmt"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// A revocation races the claim: whichever is first in the log holds, the state says
// which it was, and the service agrees (SPEC 11).
func TestRevocationRacesClaim(t *testing.T) {
	t.Parallel()
	rounds := 1000
	if testing.Short() {
		rounds = 200
	}
	s := newService(t)
	r := running(t, s)
	var mu sync.Mutex
	won := map[string]int{}
	r.many(rounds, func(i int) error {
		e, err := r.as("producer").Prepare(t.Context(), charge("r", fmt.Sprint(i), 5))
		if err != nil {
			return err
		}
		end, admission, revocation := r.race(e, i)
		winner := ""
		switch admitted, backed := admission == nil, revocation == nil; {
		case end.State == wire.StateRefused && backed && codeOf(admission) == wire.Revoked:
			winner = "revoked before its admission"
		case end.State == wire.StateSettled && end.Outcome == events.OutcomeNoEffect && backed && admitted:
			winner = "revoked before its claim"
		case end.State == wire.StateSettled && end.Outcome == events.OutcomeSucceeded && admitted && codeOf(revocation) == wire.TooLate:
			winner = "sent"
		}
		backReason := end.Reason == events.ReasonRevoked || end.Reason == events.ReasonWithdrawn
		if winner == "" || backReason == (winner == "sent") || (s.times(e.IdempotencyKey) == 1) != (winner == "sent") {
			t.Errorf("admit: %v; revoke: %v; %d times at the service; %s", admission, revocation, s.times(e.IdempotencyKey), show(end))
		}
		mu.Lock()
		defer mu.Unlock()
		won[winner]++
		return nil
	})
	t.Log(won)
	if won["revoked before its admission"] == 0 || won["sent"] == 0 {
		t.Error("one side never won")
	}
	s.served(t, won["sent"])
	r.account(0, 5*int64(won["sent"]), 0)
	entries := readAll(t, r.log())
	if n := count(entries, events.TypeDispatched, ""); n != won["sent"] {
		t.Errorf("%d claims, %d sends", n, won["sent"])
	}
	folded(t, entries)
}

// race admits an effect and takes it back at once, as its operator or its producer;
// in some rounds one of the two is first for certain.
func (r *rig) race(e wire.Effect, round int) (end wire.Effect, admission, revocation error) {
	admit := func() error {
		_, admission = r.as("producer").Admit(r.Context(), wire.AdmitRequest{EffectID: e.EffectID, BindingDigest: e.BindingDigest,
			SealedContext: sealed(string(e.RunID), string(e.CausalID))})
		return nil
	}
	why := wire.EffectReasonRequest{EffectID: e.EffectID, Reason: "a race"}
	revoke := func() error {
		if round%3 == 0 {
			_, revocation = r.as("producer").Withdraw(r.Context(), why)
		} else {
			_, revocation = r.as("operator").Revoke(r.Context(), why)
		}
		return nil
	}
	switch round % 16 {
	case 0:
		_, _ = revoke(), admit()
	case 1:
		_ = admit()
		r.ended(e.EffectID)
		_ = revoke()
	case 2, 3: // both at once: the admission is raced as well
		var both errgroup.Group
		both.Go(admit)
		both.Go(revoke)
		_ = both.Wait()
	default: // the claim is on its way when the admission is answered
		_, _ = admit(), revoke()
	}
	return r.ended(e.EffectID), admission, revocation
}

// times is how often the service was sent a key.
func (s *service) times(key events.IdempotencyKey) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[string(key)]
}
