package intake

import (
	"context"
	"testing"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
	"github.com/effectd/effectd/events/wire/endpoint"
)

// I7: an endpoint answers though nobody stores what it notes; what finds no place
// is counted.
func TestNotedBeyondTheBound(t *testing.T) {
	js := streams(t, Config{})
	d := NewDenials(t.Context(), js, Config{}, func() events.Instant { return 1 }, quiet)
	code := wire.Forbidden
	serve := d.Noting(func(context.Context, endpoint.Request) (any, *wire.Error) { return nil, wire.Errorf(code, "no") })
	for range maxNoted + 7 {
		if _, refusal := serve(t.Context(), endpoint.Request{Caller: endpoint.Caller{Tenant: "main", Principal: "p"}}); refusal == nil {
			t.Fatal("no refusal")
		}
	}
	if n := d.Dropped(); n != 7 {
		t.Errorf("%d dropped, want 7", n)
	}
	code = wire.BudgetExceeded // is no denial of authority
	serve(t.Context(), endpoint.Request{})
	if n := d.Dropped(); n != 7 {
		t.Errorf("%d dropped, want 7", n)
	}
}
