package embedded_test

import (
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// A closed task and a changed policy end thousands of effects: that is decided
// alone and holds at once, and is recorded a few at a time, so that no entry holds
// up the others (SPEC 5).
func TestFanOutEnds(t *testing.T) {
	t.Parallel()
	const held, admitted = 4500, 500
	for name, c := range map[string]struct {
		end     func(*rig) error
		typ     events.Type
		reason  events.Reason
		forGood bool
	}{
		"task closed": {func(r *rig) error {
			_, err := r.as("operator").TaskClose(r.Context(), wire.TaskCloseRequest{TaskID: "shop", Reason: "enough"})
			return err
		}, events.TypeTaskClosed, events.ReasonTaskClosed, true},
		"policy changed": {func(r *rig) error {
			r.write("policy.cedar", `permit (principal, action == Action::"observe", resource);`)
			return r.node.Reload(r.Context())
		}, events.TypePolicyChanged, events.ReasonPolicyDenied, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			arrived, let := s.holds()
			r := newRig(t, s, "concurrency: 32", "concurrency: 1", "timeout: 10s", "timeout: 60s")
			r.write("effectd.yaml", fmt.Sprintf("limits: {prepared_per_principal: %d}\n", held+1))
			r.start()
			r.openTask("shop", 1_000_000)
			child := taskRequest("shelf", 1_000_000)
			child.Parent = "shop"
			if _, err := r.as("operator").TaskOpen(t.Context(), child); err != nil {
				t.Fatal(err)
			}
			sent := r.submitAndGo("r", "sent")
			take(t, "the first send arrives", arrived)
			r.many(held+admitted, func(i int) error {
				request := charge("r", fmt.Sprint(i), 5)
				request.TaskID = "shelf"
				if i < held {
					_, err := r.as("producer").Prepare(t.Context(), request)
					return err
				}
				_, err := r.as("producer").Submit(t.Context(), wire.SubmitRequest{PrepareRequest: request})
				return err
			})
			if err := c.end(r); err != nil {
				t.Fatal(err)
			}

			asRefused := func() {
				t.Helper()
				if n := len(r.listed(wire.StatePermitted)); n != 0 {
					t.Fatalf("%d show as permitted after the end", n)
				}
				refused := r.listed(wire.StateRefused)
				if len(refused) != held || slices.ContainsFunc(refused, func(e wire.Effect) bool { return e.Reason != c.reason || e.Permit.State != wire.PermitRevoked }) {
					t.Fatalf("%d show as refused, the first %s", len(refused), show(refused[0]))
				}
			}
			if c.forGood { // what could be undone shows when it is recorded
				asRefused()
			}
			for _, i := range []int{0, held / 2, held - 1} { // and is over at once in any case
				e, err := r.as("producer").Get(t.Context(), wire.GetRequest{RunID: "r", CausalID: events.CausalID(fmt.Sprint(i))})
				if err == nil {
					_, err = r.as("producer").Admit(t.Context(), wire.AdmitRequest{EffectID: e.EffectID, BindingDigest: e.BindingDigest, SealedContext: sealed("r", fmt.Sprint(i))})
				}
				refusedWith(t, err, wire.Code(c.reason))
			}
			eventually(t, "all is recorded", func() bool {
				states := r.status().Effects
				return states[wire.StateRefused] == held && states[wire.StateSettled] == admitted
			})
			asRefused()
			close(let)
			settledAs(t, r.ended(sent.EffectID), events.OutcomeSucceeded) // it was sent before
			r.account(0, 5, 0)
			s.served(t, 1)

			most, ends, company := 0, 0, 0
			for _, entry := range readAll(t, r.log()) {
				n := 0
				for _, ev := range entry.Events {
					if ev.Type == c.typ {
						company = len(entry.Events) - 1
					}
					if ev.Actor == events.SystemActor && (ev.Type == events.TypeRefused || ev.Type == events.TypeSettled) {
						n++
					}
				}
				most, ends = max(most, n), ends+n
			}
			if ends != held+admitted+1 || most > 32 || company > 0 { // with the one that was sent
				t.Errorf("%d ends, up to %d in an entry; %d with what ends them", ends, most, company)
			}
		})
	}
}

// many calls f for 0 … n−1, some at a time.
func (r *rig) many(n int, f func(i int) error) {
	r.Helper()
	var group errgroup.Group
	group.SetLimit(512)
	for i := range n {
		group.Go(func() error { return f(i) })
	}
	if err := group.Wait(); err != nil {
		r.Fatal(err)
	}
}

// listed reads every effect that shows in a state.
func (r *rig) listed(state wire.State) (all []wire.Effect) {
	r.Helper()
	request := wire.ListRequest{State: string(state), Limit: 500}
	for {
		page, err := r.as("operator").List(r.Context(), request)
		if err != nil {
			r.Fatal(err)
		}
		all = append(all, page.Items...)
		if request.Cursor = page.Cursor; request.Cursor == "" {
			return all
		}
	}
}
