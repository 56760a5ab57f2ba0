package embedded_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/dispatcher"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/projector/anchor"
)

// looking sends like the HTTP adapter, and looks at the anchor on the disk first.
type looking struct {
	dispatcher.HTTP
	dir  string
	mu   sync.Mutex
	seen map[events.EffectID]anchor.Mark
}

func (l *looking) Render(send dispatcher.Send) (dispatcher.Shot, error) {
	shot, err := l.HTTP.Render(send)
	return lookingShot{shot, l, send.EffectID}, err
}

type lookingShot struct {
	dispatcher.Shot
	*looking
	id events.EffectID
}

func (l lookingShot) Fire(ctx context.Context, deadline time.Time) aggregate.Result {
	mark, err := anchor.Read(vfs.Default, l.dir)
	if err != nil {
		mark = anchor.Mark{}
	}
	l.mu.Lock()
	l.seen[l.id] = mark
	l.mu.Unlock()
	return l.Shot.Fire(ctx, deadline)
}

// At each send the anchor knows the claim's entry (M4).
func TestAnchorKnowsEveryClaim(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newRig(t, s)
	look := &looking{HTTP: dispatcher.HTTP{Now: time.Now}, dir: r.home().AnchorDir(), seen: map[events.EffectID]anchor.Mark{}}
	r.opts.Adapters = map[string]dispatcher.Adapter{"http": look}
	r.start()
	r.openTask("shop", 1000)
	const sends = 8
	for i := range sends {
		settledAs(t, r.submit("r", fmt.Sprint(i)), events.OutcomeSucceeded)
	}
	claims := 0
	for _, entry := range readAll(t, r.log()) {
		for i := range entry.Events {
			ev := &entry.Events[i]
			if ev.Type != events.TypeDispatched {
				continue
			}
			claims++
			if mark := look.seen[ev.EffectID]; mark.Seq < entry.Seq || mark.Seq == entry.Seq && mark.SHA256 != entry.SHA256 {
				t.Errorf("effect %s was sent with the anchor at %d, its claim is in entry %d", ev.EffectID, mark.Seq, entry.Seq)
			}
		}
	}
	if claims != sends {
		t.Fatalf("%d claims", claims)
	}
	s.served(t, sends)
}
