package eventlog

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// Config is how a log is made and what is required of it. Zero means default.
type Config struct {
	// LedgerID is whose entries the log holds. Empty: whose the first entry read is.
	LedgerID events.LedgerID
	// Replicas is the least number of copies (default 1).
	Replicas int
	// MaxBytes bounds the stream that Create makes (default 1 GiB).
	MaxBytes int64
	// AckWait is how long one attempt waits for the server (default 2 s).
	AckWait time.Duration
	// Poll makes Tail ask by direct get at this interval instead of making a
	// consumer, for a reader that may not make one.
	Poll time.Duration
}

const (
	defaultMaxBytes = 1 << 30
	defaultAckWait  = 2 * time.Second

	// Longer would keep every event id in the memory of the server for nothing:
	// the expected sequence decides, not the window.
	duplicateWindow    = 5 * time.Second
	maxDuplicateWindow = 2 * time.Minute
)

// Validate reports every fault at once.
func (c Config) Validate() error {
	var faults []error
	if c.Replicas < 0 || c.Replicas > 5 {
		faults = append(faults, errors.New("replicas: want 1 to 5"))
	}
	if c.MaxBytes < 0 {
		faults = append(faults, errors.New("max bytes: negative"))
	}
	if c.AckWait < 0 {
		faults = append(faults, errors.New("ack wait: negative"))
	}
	if c.Poll < 0 {
		faults = append(faults, errors.New("poll: negative"))
	}
	if len(faults) > 0 {
		return fmt.Errorf("log configuration: %w", errors.Join(faults...))
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultMaxBytes
	}
	if c.AckWait == 0 {
		c.AckWait = defaultAckWait
	}
	return c
}

// madeFor is the metadata that names the ledger for which a stream was made.
const madeFor = "effectd_ledger_id"

// StreamConfig is the stream that Create makes; an owner of an external server
// may make it beforehand from this.
func (c Config) StreamConfig() jetstream.StreamConfig {
	c = c.withDefaults()
	made := map[string]string{}
	if c.LedgerID != "" {
		made[madeFor] = string(c.LedgerID)
	}
	return jetstream.StreamConfig{
		Name:        wire.LogStream,
		Description: "The log of an effectd ledger. Never update, purge or delete it.",
		Subjects:    []string{wire.LogSubject},
		Storage:     jetstream.FileStorage,
		Replicas:    c.Replicas,
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew,
		MaxBytes:    c.MaxBytes,
		MaxMsgs:     -1,
		MaxMsgSize:  -1,
		Duplicates:  duplicateWindow,
		DenyDelete:  true,
		DenyPurge:   true,
		AllowDirect: true,
		Metadata:    made,
	}
}
