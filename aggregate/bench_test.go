package aggregate_test

import (
	"strconv"
	"testing"

	"github.com/effectd/effectd/aggregate/rehearsal"
	"github.com/effectd/effectd/events"
)

// BenchmarkLife is the law's share of one effect: submit (prepared, permitted,
// admitted), claim and report, each an entry of its own.
func BenchmarkLife(b *testing.B) {
	b.ReportAllocs()
	limits := rehearsal.Limits
	limits.EffectRecords, limits.LiveBytes = 0, 0
	w := rehearsal.NewLimited(limits)
	w.Do(w.OpenTask(rehearsal.Operator, "big", "", events.Amounts{"usd_cents": events.MaxAmount, "effects": events.MaxAmount}, rehearsal.Producer))
	for i := range b.N {
		cmd := rehearsal.Submit(rehearsal.Producer, "charge", `{"account":"a","amount":5}`, "run", events.CausalID(strconv.Itoa(i)))
		cmd.Request.TaskID = "big"
		d := w.Do(cmd)
		if d.Refusal != nil {
			b.Fatal(d.Refusal)
		}
		w.Do(w.Claim(d.EffectID))
		w.Do(w.Report(d.EffectID, events.OutcomeSucceeded, events.Amounts{"usd_cents": 5}))
		w.Entries = w.Entries[:0]
	}
}
