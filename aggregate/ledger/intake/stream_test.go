package intake

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/events/wire"
)

const mib = 1 << 20

// The bounds follow the configuration, and nothing that waits is removed for it.
func TestBoundsFollowConfiguration(t *testing.T) {
	large, small := Config{RequestBytes: 64 * mib, RecordBytes: 16 << 10}, Config{RequestBytes: mib, RecordBytes: 4 << 10}
	js := streams(t, large)
	body := strings.Repeat("x", 8<<10)
	const kept = 300 // more than small takes, of one principal and of all
	for n := range kept {
		if _, err := js.Publish(t.Context(), wire.RequestsSubject("main", "p"), []byte(body)); err != nil {
			t.Fatal(n, err)
		}
	}
	for _, c := range []Config{small, large, small} {
		if off := attach(t.Context(), js, c.RequestStream(), quiet); off != "" {
			t.Fatal(off)
		}
		s, err := js.Stream(t.Context(), wire.RequestStream)
		if err != nil {
			t.Fatal(err)
		}
		if i := s.CachedInfo(); i.State.Msgs != kept || i.Config.MaxBytes != c.RequestBytes {
			t.Fatalf("%d messages in at most %d bytes, want %d in %d", i.State.Msgs, i.Config.MaxBytes, kept, c.RequestBytes)
		}
	}
	if _, err := js.Publish(t.Context(), wire.RequestsSubject("main", "p"), nil); err == nil {
		t.Error("it takes more than its bounds")
	}
}

// One principal fills at most its share of the queue.
func TestShareOfThePrincipal(t *testing.T) {
	c := Config{RequestBytes: 4 * mib, RecordBytes: 16 << 10}
	js := streams(t, c)
	largest := strings.Repeat("x", int(c.RequestStream().MaxMsgSize))
	for _, p := range []string{"a", "b", "c"} {
		n := 0
		for ; ; n++ {
			if _, err := js.Publish(t.Context(), "effects.requests.main."+p, []byte(largest)); err != nil {
				break
			}
		}
		if used := n * len(largest); used > 4*mib/share || used < 4*mib/share-2*len(largest) {
			t.Errorf("%s kept %d bytes", p, used)
		}
	}
	if _, err := js.Publish(t.Context(), "effects.requests.main.d", []byte(largest)); err != nil {
		t.Error(err)
	}
}

// A stream that could lose requests without a word is not served.
func TestWeakStreams(t *testing.T) {
	for what, weaken := range map[string]func(*jetstream.StreamConfig){
		"discards":  func(c *jetstream.StreamConfig) { c.Discard, c.DiscardNewPerSubject = jetstream.DiscardOld, false },
		"ages":      func(c *jetstream.StreamConfig) { c.MaxAge = 1e12 },
		"unbounded": func(c *jetstream.StreamConfig) { c.MaxBytes = -1 },
		"memory":    func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"kept":      func(c *jetstream.StreamConfig) { c.Retention = jetstream.LimitsPolicy },
		"wider":     func(c *jetstream.StreamConfig) { c.Subjects = []string{"effects.requests.>"} },
		"dedupes":   func(c *jetstream.StreamConfig) { c.Duplicates = 1e11 },
		"missing":   nil,
	} {
		t.Run(what, func(t *testing.T) {
			js := streams(t, Config{})
			if err := js.DeleteStream(t.Context(), wire.RequestStream); err != nil {
				t.Fatal(err)
			}
			if weaken != nil {
				c := Config{}.RequestStream()
				weaken(&c)
				if _, err := js.CreateStream(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			d := NewDenials(t.Context(), js, Config{}, nil, quiet)
			if i := New(t.Context(), js, Config{}, nil, d, quiet); d.Off() != "" || i.Off() == "" {
				t.Errorf("denials %q, requests %q", d.Off(), i.Off())
			}
		})
	}
}
