package eventlog

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/events/wire"
)

// L6: what is not there is distrusted and not made.
func TestAttachNeverCreates(t *testing.T) {
	srv := startServer(t, t.TempDir())
	js := connect(t, srv.ClientURL())
	_, err := Attach(testContext(t), js, Config{})
	wantError(t, err, ErrUntrusted)
	if !strings.Contains(err.Error(), "missing") {
		t.Fatal(err)
	}
	_, err = js.Stream(testContext(t), wire.LogStream)
	wantError(t, err, jetstream.ErrStreamNotFound)
}

func TestCreateRefusesAnExistingStream(t *testing.T) {
	srv := startServer(t, t.TempDir())
	s := create(t, srv.ClientURL(), Config{LedgerID: ledger})
	list := entries(3, "a", 0)
	appendAll(t, s, list)
	_, err := Create(testContext(t), connect(t, srv.ClientURL()), Config{LedgerID: ledger})
	wantError(t, err, ErrExists)
	if of, err := MadeFor(testContext(t), connect(t, srv.ClientURL())); err != nil || of != ledger {
		t.Errorf("made for %q, %v", of, err)
	}
	attached, err := Attach(testContext(t), connect(t, srv.ClientURL()), Config{LedgerID: ledger})
	if err != nil {
		t.Fatal(err)
	}
	sameEntries(t, mustReadAll(t, attached), list)
}

func TestAttachRefusesAWeakStream(t *testing.T) {
	srv := startServer(t, t.TempDir())
	js := connect(t, srv.ClientURL())
	for says, weaken := range map[string]func(*jetstream.StreamConfig){
		"subjects are not exactly": func(c *jetstream.StreamConfig) { c.Subjects = []string{"effects.log", "effects.more"} },
		"subjects are":             func(c *jetstream.StreamConfig) { c.Subjects = []string{"effects.>"} },
		"storage is not file":      func(c *jetstream.StreamConfig) { c.Storage, c.MaxBytes = jetstream.MemoryStorage, 1<<20 },
		"persists asynchronously":  func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode },
		"does not acknowledge":     func(c *jetstream.StreamConfig) { c.NoAck = true },
		"retention is not limits":  func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy },
		"discards old entries":     func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
		"no maximum size":          func(c *jetstream.StreamConfig) { c.MaxBytes = -1 },
		"number of messages":       func(c *jetstream.StreamConfig) { c.MaxMsgs = 10 },
		"per subject":              func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 10 },
		"size of a message":        func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000 },
		"limits the age":           func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"allows TTLs":              func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true },
		"allows rollup":            func(c *jetstream.StreamConfig) { c.AllowRollup, c.DenyPurge = true, false },
		"does not deny delete":     func(c *jetstream.StreamConfig) { c.DenyDelete = false },
		"does not deny purge":      func(c *jetstream.StreamConfig) { c.DenyPurge = false },
		"does not allow direct":    func(c *jetstream.StreamConfig) { c.AllowDirect = false },
		"has sources":              func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{{Name: "OTHER"}} },
		"transforms subjects": func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: ">", Destination: "a.>"}
		},
		"republishes":  func(c *jetstream.StreamConfig) { c.RePublish = &jetstream.RePublish{Source: ">", Destination: "a.>"} },
		"is a counter": func(c *jetstream.StreamConfig) { c.AllowMsgCounter, c.Discard = true, jetstream.DiscardOld },
		"scheduled messages": func(c *jetstream.StreamConfig) {
			c.AllowMsgSchedules, c.AllowRollup, c.DenyPurge, c.Discard = true, true, false, jetstream.DiscardOld
		},
		"duplicate window is": func(c *jetstream.StreamConfig) { c.Duplicates = time.Hour },
		"is a mirror": func(c *jetstream.StreamConfig) {
			c.Subjects, c.Mirror, c.Duplicates, c.Retention = nil, &jetstream.StreamSource{Name: "OTHER"}, 0, jetstream.LimitsPolicy
		},
	} {
		t.Run(says, func(t *testing.T) {
			c := Config{}.StreamConfig()
			weaken(&c)
			if _, err := js.CreateStream(testContext(t), c); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := js.DeleteStream(context.WithoutCancel(t.Context()), c.Name); err != nil {
					t.Fatal(err)
				}
			}()
			_, err := Attach(testContext(t), js, Config{})
			wantNamed(t, err, says)
		})
	}
}

func wantNamed(t *testing.T, err error, says string) {
	t.Helper()
	var d *Distrust
	if !errors.As(err, &d) || !strings.Contains(d.Reason, says) {
		t.Fatalf("got %v, want distrust because it %s", err, says)
	}
}

func TestAttachWantsReplicas(t *testing.T) {
	srv := startServer(t, t.TempDir())
	create(t, srv.ClientURL(), Config{})
	_, err := Attach(testContext(t), connect(t, srv.ClientURL()), Config{Replicas: 3})
	wantNamed(t, err, "1 replicas, want 3")
}

// A sealed stream cannot be written, and every fault is named.
func TestAttachNamesEveryFault(t *testing.T) {
	srv := startServer(t, t.TempDir())
	js := connect(t, srv.ClientURL())
	c := Config{}.StreamConfig()
	c.DenyDelete, c.DenyPurge = false, false
	if _, err := js.CreateStream(testContext(t), c); err != nil {
		t.Fatal(err)
	}
	_, err := Attach(testContext(t), js, Config{Replicas: 2})
	for _, says := range []string{"1 replicas, want 2", "does not deny delete", "does not deny purge"} {
		wantNamed(t, err, says)
	}
	c.Sealed = true
	if _, err := js.UpdateStream(testContext(t), c); err != nil {
		t.Fatal(err)
	}
	_, err = Attach(testContext(t), js, Config{})
	wantNamed(t, err, "is sealed")
}

func TestAttachRefusesDeletedMessages(t *testing.T) {
	srv := startServer(t, t.TempDir())
	js := connect(t, srv.ClientURL())
	c := Config{}.StreamConfig()
	c.DenyDelete = false
	stream, err := js.CreateStream(testContext(t), c)
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, newStream(js, stream, Config{}), entries(5, "a", 0))
	if err := stream.DeleteMsg(testContext(t), 3); err != nil {
		t.Fatal(err)
	}
	_, err = Attach(testContext(t), js, Config{})
	wantNamed(t, err, "reports 1 deleted messages")
	if err := stream.DeleteMsg(testContext(t), 1); err != nil {
		t.Fatal(err)
	}
	_, err = Attach(testContext(t), js, Config{})
	wantNamed(t, err, "begins at entry 2")
}

// What Attach checked can change while the log is open.
func TestCheckSeesWhatChanged(t *testing.T) {
	srv := startServer(t, t.TempDir())
	s := create(t, srv.ClientURL(), Config{LedgerID: ledger})
	appendAll(t, s, entries(5, "a", 0))
	if err := s.Check(testContext(t)); err != nil {
		t.Fatal(err)
	}
	admin := connect(t, srv.ClientURL())
	c := Config{}.StreamConfig()
	c.MaxMsgs = 2
	if _, err := admin.UpdateStream(testContext(t), c); err != nil {
		t.Fatal(err)
	}
	wantNamed(t, s.Check(testContext(t)), "number of messages")

	if err := admin.DeleteStream(testContext(t), wire.LogStream); err != nil {
		t.Fatal(err)
	}
	wantNamed(t, s.Check(testContext(t)), "missing")
	_, err := s.Read(testContext(t), 1, 0)
	wantNamed(t, err, "missing")
	wantNamed(t, s.Append(testContext(t), entries(6, "a", 0)[5]), "missing")

	c.MaxMsgs = -1
	if _, err := admin.CreateStream(testContext(t), c); err != nil {
		t.Fatal(err)
	}
	wantNamed(t, s.Check(testContext(t)), "replaced")
}

func TestConfigNamesEveryFault(t *testing.T) {
	err := Config{Replicas: 9, MaxBytes: -1, AckWait: -1, Poll: -1}.Validate()
	for _, says := range []string{"replicas", "max bytes", "ack wait", "poll"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Fatalf("%v does not name %s", err, says)
		}
	}
	if err := (Config{}).Validate(); err != nil {
		t.Fatal(err)
	}
}
