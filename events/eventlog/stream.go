package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// Stream is the log on JetStream. It starts no goroutine of its own; closing
// the connection ends it.
type Stream struct {
	js     jetstream.JetStream
	nc     *nats.Conn
	stream jetstream.Stream
	api    string // prefix of the JetStream API subjects, with the last dot
	cfg    Config
	at     Status // as attached
	opener *opener

	appending chan struct{} // holds the token of the one append in flight
	acks      *acks         // nil until the first append
	pending   *events.Stored
	tail      tip
	verified  uint64 // reconnects of the connection when the tail was last looked at
}

// tip is the last entry known to be in the log by an append of our own.
type tip struct {
	seq    uint64
	sha256 events.Digest
}

var _ Log = (*Stream)(nil)

// Create makes the stream and attaches to it. It is for `init` alone: where
// the data of a stream is merely unreadable, making it anew deletes it. It
// refuses, with ErrExists, when there is a stream of that name.
func Create(ctx context.Context, js jetstream.JetStream, cfg Config) (*Stream, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	_, err := js.Stream(ctx, wire.LogStream)
	switch {
	case err == nil:
		return nil, fmt.Errorf("create %s: %w", wire.LogStream, ErrExists)
	case !errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, fmt.Errorf("create %s: %w: %w", wire.LogStream, ErrUnavailable, err)
	}
	_, err = js.CreateStream(ctx, cfg.StreamConfig())
	switch {
	case errors.Is(err, jetstream.ErrStreamNameAlreadyInUse):
		return nil, fmt.Errorf("create %s: %w", wire.LogStream, ErrExists)
	case err != nil:
		return nil, fmt.Errorf("create %s: %w", wire.LogStream, err)
	}
	return Attach(ctx, js, cfg)
}

// MadeFor is the ledger for which the stream was made; empty if it does not say.
func MadeFor(ctx context.Context, js jetstream.JetStream) (events.LedgerID, error) {
	stream, err := js.Stream(ctx, wire.LogStream)
	if err != nil {
		return "", infoError(err)
	}
	return events.LedgerID(stream.CachedInfo().Config.Metadata[madeFor]), nil
}

// Attach opens an existing stream and refuses, with a *Distrust, one that is
// missing, weaker than required or admits damage.
func Attach(ctx context.Context, js jetstream.JetStream, cfg Config) (*Stream, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	stream, err := js.Stream(ctx, wire.LogStream)
	if err != nil {
		return nil, fmt.Errorf("attach: %w", infoError(err))
	}
	if err := check(stream.CachedInfo(), cfg); err != nil {
		return nil, err
	}
	return newStream(js, stream, cfg), nil
}

func newStream(js jetstream.JetStream, stream jetstream.Stream, cfg Config) *Stream {
	return &Stream{
		js:        js,
		nc:        js.Conn(),
		stream:    stream,
		api:       apiPrefix(js.Options()),
		cfg:       cfg.withDefaults(),
		at:        statusOf(stream.CachedInfo()),
		opener:    newOpener(cfg.LedgerID),
		appending: make(chan struct{}, 1),
		verified:  math.MaxUint64,
	}
}

func apiPrefix(o jetstream.JetStreamOptions) string {
	switch {
	case o.Domain != "":
		return "$JS." + o.Domain + ".API."
	case o.APIPrefix != "":
		return strings.TrimSuffix(o.APIPrefix, ".") + "."
	}
	return jetstream.DefaultAPIPrefix
}

// Status implements [Log].
func (s *Stream) Status(ctx context.Context) (Status, error) {
	info, err := s.info(ctx)
	if err != nil {
		return Status{}, fmt.Errorf("log status: %w", err)
	}
	return statusOf(info), nil
}

// Last implements [Log].
func (s *Stream) Last(ctx context.Context) (uint64, error) {
	st, err := s.Status(ctx)
	return st.LastSeq, err
}

// Check judges the stream again as Attach did: somebody may have changed,
// damaged or replaced it since. It returns nil, a *Distrust, or ErrUnavailable.
func (s *Stream) Check(ctx context.Context) error {
	info, err := s.info(ctx)
	if err != nil {
		return fmt.Errorf("check log: %w", err)
	}
	if !info.Created.Equal(s.at.Created) {
		return &Distrust{Reason: "stream " + wire.LogStream + " was replaced by another one"}
	}
	return check(info, s.cfg)
}

func (s *Stream) info(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.AckWait)
	defer cancel()
	// js.Stream and not s.stream.Info: that one writes a cache without a lock.
	stream, err := s.js.Stream(ctx, wire.LogStream)
	if err != nil {
		return nil, infoError(err)
	}
	return stream.CachedInfo(), nil
}

func infoError(err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return &Distrust{Reason: "stream " + wire.LogStream + " is missing"}
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// unanswered turns "nobody serves this" into a Distrust when the stream is gone.
func (s *Stream) unanswered(ctx context.Context, cause error) error {
	var d *Distrust
	if _, err := s.info(ctx); errors.As(err, &d) {
		return d
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, cause)
}
