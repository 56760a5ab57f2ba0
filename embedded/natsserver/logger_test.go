package natsserver

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/effectd/effectd/events"
)

// told hands out what is logged.
type told chan slog.Record

func (c told) Enabled(_ context.Context, l slog.Level) bool  { return l >= slog.LevelInfo }
func (c told) Handle(_ context.Context, r slog.Record) error { c <- r; return nil }
func (c told) WithAttrs([]slog.Attr) slog.Handler            { return c }
func (c told) WithGroup(string) slog.Handler                 { return c }
func (c told) next(t *testing.T, words string) (level slog.Level) {
	t.Helper()
	for late := time.After(patience); ; {
		select {
		case r := <-c:
			if strings.Contains(r.Message, words) {
				return r.Level
			}
		case <-late:
			t.Fatalf("%q is not logged", words)
		}
	}
}

// What a user may not do is no error of the node.
func TestViolationIsAWarning(t *testing.T) {
	logged := make(told, 1024)
	p := newPerson(t, "main", "producer", events.RoleProducer)
	s, err := Start(t.Context(), Options{StoreDir: t.TempDir(), Users: rows(p), Logger: slog.New(logged)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	c := dialAs(t, s.ClientURL(), p)
	c.forbidden(t, "publish", func() error { return c.Publish("effects.log", nil) })
	if level := logged.next(t, `Publish Violation - Subject "effects.log"`); level != slog.LevelWarn {
		t.Errorf("publish: %v", level)
	}
	c.forbidden(t, "subscribe", func() error { _, err := c.SubscribeSync("effects.log"); return err })
	if level := logged.next(t, `Subscription Violation - Subject "effects.log"`); level != slog.LevelWarn {
		t.Errorf("subscribe: %v", level)
	}
}
