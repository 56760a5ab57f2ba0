package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/events/wire"
)

// Config is how the streams are made. Zero means default.
type Config struct {
	RequestBytes int64 // of all requests that wait (256 MiB)
	RecordBytes  int64 // of one record in the log (64 KiB)
	DenialBytes  int64 // of the denials that are kept (64 MiB)
	Replicas     int   // (1)
}

const (
	envelopeBytes  = 16 << 10 // of a request beside its payload
	share          = 4        // no principal fills more than this part of the queue
	denialsPerCode = 20_000   // of one tenant and code: a flood of one kind leaves the others
	apiWait        = 5 * time.Second
)

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		v   *int64
		def int64
	}{{&c.RequestBytes, 256 << 20}, {&c.RecordBytes, 64 << 10}, {&c.DenialBytes, 64 << 20}} {
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	c.Replicas = max(c.Replicas, 1)
	return c
}

// RequestStream is the work queue. It is full for a principal before it is full
// for all, and then says so: nothing is dropped.
func (c Config) RequestStream() jetstream.StreamConfig {
	c = c.withDefaults()
	largest := c.RecordBytes + envelopeBytes
	return jetstream.StreamConfig{
		Name: wire.RequestStream, Description: "Effects asked for that wait to be decided.", Subjects: []string{wire.RequestPrefix + "*.*"},
		Storage: jetstream.FileStorage, Replicas: c.Replicas, Retention: jetstream.WorkQueuePolicy,
		Discard: jetstream.DiscardNew, MaxBytes: c.RequestBytes, MaxMsgSize: int32(largest),
		MaxMsgsPerSubject: max(1, c.RequestBytes/share/largest), DiscardNewPerSubject: true,
		// The server's window knows ids, not who sent them: with a long one a producer
		// could have another's request taken for a repeat of its own. This is the least.
		Duplicates: 100 * time.Millisecond,
		DenyDelete: true, DenyPurge: true,
	}
}

// DenialStream keeps the newest denials.
func (c Config) DenialStream() jetstream.StreamConfig {
	c = c.withDefaults()
	return jetstream.StreamConfig{
		Name: wire.DenialStream, Description: "Requests that were denied and left nothing in the log.", Subjects: []string{wire.DeniedPrefix + "*.*"},
		Storage: jetstream.FileStorage, Replicas: c.Replicas, Retention: jetstream.LimitsPolicy,
		Discard: jetstream.DiscardOld, MaxBytes: c.DenialBytes, MaxMsgsPerSubject: denialsPerCode,
		DenyDelete: true, DenyPurge: true, AllowDirect: true,
	}
}

// Create makes both streams; it is for `init` alone. A stream whose data cannot
// be read looks like a missing one: making it again would delete what waits.
func Create(ctx context.Context, js jetstream.JetStream, c Config) error {
	for _, s := range []jetstream.StreamConfig{c.RequestStream(), c.DenialStream()} {
		if _, err := js.CreateStream(ctx, s); err != nil {
			return fmt.Errorf("create %s: %w", s.Name, err)
		}
	}
	return nil
}

// attach says why a stream cannot be served; empty if it can. Its bounds follow
// the configuration.
func attach(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig, log *slog.Logger) string {
	ctx, cancel := context.WithTimeout(ctx, apiWait)
	defer cancel()
	stream, err := js.Stream(ctx, want.Name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return "the stream " + want.Name + " is missing: only init makes it, and the program that made this ledger had none"
	case err != nil:
		return "the stream " + want.Name + " does not answer: " + err.Error()
	}
	have := stream.CachedInfo().Config
	if found := weaknesses(have, want); len(found) > 0 {
		return "the stream " + want.Name + " " + strings.Join(found, ", ")
	}
	bounded := have
	bounded.MaxBytes = want.MaxBytes
	// Less than before would have the server remove what waits beyond it.
	bounded.MaxMsgsPerSubject = max(have.MaxMsgsPerSubject, want.MaxMsgsPerSubject)
	bounded.MaxMsgSize = max(have.MaxMsgSize, want.MaxMsgSize)
	if bounded.MaxBytes == have.MaxBytes && bounded.MaxMsgsPerSubject == have.MaxMsgsPerSubject && bounded.MaxMsgSize == have.MaxMsgSize {
		return ""
	}
	if _, err := js.UpdateStream(ctx, bounded); err != nil {
		log.Warn("a stream keeps its bounds", "stream", want.Name, "error", err)
	}
	return ""
}

// weaknesses lists how a stream could lose messages without a word, or take them
// from elsewhere.
func weaknesses(c, want jetstream.StreamConfig) (found []string) {
	for _, rule := range []struct {
		broken bool
		says   string
	}{
		{!slices.Equal(c.Subjects, want.Subjects), "has other subjects"},
		{c.Retention != want.Retention, "has another retention"},
		{c.Discard != want.Discard, "discards what it should keep, or keeps what it should discard"},
		{c.Storage != want.Storage, "is not stored in files"},
		{c.PersistMode != jetstream.DefaultPersistMode, "persists asynchronously"},
		{c.MaxBytes <= 0, "has no maximum size"},
		{c.MaxAge > 0 || c.AllowMsgTTL, "limits the age of messages"},
		{c.NoAck, "does not acknowledge"},
		{c.AllowRollup, "allows rollup"},
		{c.Mirror != nil || len(c.Sources) > 0, "is a mirror, or has sources"},
		{want.Duplicates > 0 && c.Duplicates > 10*want.Duplicates, "has a long duplicate window"},
	} {
		if rule.broken {
			found = append(found, rule.says)
		}
	}
	return found
}
