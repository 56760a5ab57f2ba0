package bench

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// B2, B3: every effect of a run is sent once and settled, every figure is there,
// and nothing stays on disk.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	sends := map[events.EffectID]int{}
	steps, last := 0, 0
	result, err := Run(t.Context(), Options{InFlight: []int{8, 1}, Duration: 100 * time.Millisecond, WarmUp: 10 * time.Millisecond, Dir: dir,
		Progress: func(_ string, done, total int) { steps, last = done+1, total },
		sent: func(id events.EffectID) {
			mu.Lock()
			defer mu.Unlock()
			sends[id]++
		}})
	if err != nil {
		t.Fatal(err)
	}
	if steps != last || last == 0 {
		t.Errorf("%d of %d steps were told", steps, last)
	}
	if len(sends) == 0 {
		t.Error("nothing was sent")
	}
	for id, n := range sends {
		if n != 1 {
			t.Errorf("effect %s was sent %d times", id, n)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	checkShape(t, result)
}

// The names of SPEC 20, each with a number.
func checkShape(t *testing.T, result Result) {
	t.Helper()
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	positive := func(o map[string]any, name string) {
		t.Helper()
		if v, ok := o[name].(float64); !ok || v <= 0 {
			t.Errorf("%s is %v", name, o[name])
		}
	}
	positive(got, "raw_publish_per_s")
	rows, _ := got["rows"].([]any)
	if len(rows) != 2 {
		t.Fatalf("%d rows: %s", len(rows), text)
	}
	for i, inFlight := range []float64{1, 8} {
		row := rows[i].(map[string]any)
		if row["in_flight"] != inFlight {
			t.Errorf("row %d is of %v", i, row["in_flight"])
		}
		for _, name := range []string{"effects_per_s", "bare_per_s", "ratio", "entries_per_effect", "bare_entries_per_effect", "log_bytes_per_effect"} {
			positive(row, name)
		}
		for _, name := range []string{"admitted_ms", "settled_ms"} {
			q, _ := row[name].(map[string]any)
			positive(q, "p50")
			positive(q, "p99")
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{InFlight: []int{0}}, {InFlight: []int{MaxInFlight + 1}}, {Duration: -1}, {Duration: time.Hour}, {WarmUp: -1}} {
		if _, err := Run(t.Context(), o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

func TestQuantiles(t *testing.T) {
	var latencies []time.Duration
	for i := 200; i > 0; i-- {
		latencies = append(latencies, time.Duration(i)*time.Millisecond)
	}
	if got, want := quantilesOf(latencies), (Quantiles{P50: 100, P99: 198}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := quantilesOf([]time.Duration{time.Second}); got != (Quantiles{P50: 1000, P99: 1000}) {
		t.Errorf("of one: %+v", got)
	}
	if got := quantilesOf(nil); got != (Quantiles{}) {
		t.Errorf("of none: %+v", got)
	}
}

// A reply that is not the one asked for ends the measurement.
func TestRepliesAreChecked(t *testing.T) {
	good := wire.Effect{EffectID: "e", State: wire.StateSettled, Outcome: events.OutcomeSucceeded, Receipt: &events.Receipt{}}
	l := load{wait: wire.WaitTerminal}
	if err := l.check(&good); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*wire.Effect){
		"a repeat":   func(e *wire.Effect) { e.Repeat = true },
		"no receipt": func(e *wire.Effect) { e.Receipt = nil },
		"unknown":    func(e *wire.Effect) { e.State = wire.StateUnknown },
		"failed":     func(e *wire.Effect) { e.Outcome = events.OutcomeFailed },
	} {
		bad := good
		if spoil(&bad); l.check(&bad) == nil {
			t.Errorf("%s passes", name)
		}
	}
}
