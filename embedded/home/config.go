package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/effectd/effectd/events"
)

// Config is effectd.yaml. Zero means default; [Config.WithDefaults] fills them in.
type Config struct {
	// Node names this node in the log (default: the host's name).
	Node string `yaml:"node"`
	// Limits are the bounds of the ledger; the log keeps what it was opened with.
	Limits LimitsConfig `yaml:"limits"`
	// PermitTTL is from issue to expiry of a permit, at most (default 300 s).
	PermitTTL Duration `yaml:"permit_ttl"`
	// ShutdownBudget is what running sends get at a stop (default 30 s).
	ShutdownBudget Duration `yaml:"shutdown_budget"`
	// ScrubEvery is how often the whole log is read again (default 24 h).
	ScrubEvery Duration `yaml:"scrub_every"`
	// DiskReserve is the free space below which no new effect is written (default 256 MiB).
	DiskReserve Size `yaml:"disk_reserve"`
	// SpoolBytes bounds the results that wait for the ledger (default 64 MiB).
	SpoolBytes Size `yaml:"spool_bytes"`
	// FeedBytes bounds the feed, oldest dropped (default 1 GiB).
	FeedBytes Size `yaml:"feed_bytes"`
	// DenialBytes bounds the denials, oldest dropped (default 64 MiB).
	DenialBytes Size `yaml:"denial_bytes"`
	// RequestBytes bounds the intake that waits (default 256 MiB).
	RequestBytes Size `yaml:"request_bytes"`
	// PayloadBytes bounds the protected payloads (default 1 GiB).
	PayloadBytes Size `yaml:"payload_bytes"`
	// Replicas is the least number of copies of the log on an external server
	// (default 3); the embedded server keeps one.
	Replicas int `yaml:"replicas"`
	// TLS encrypts the connections of users.
	TLS TLSConfig `yaml:"tls"`
}

// LimitsConfig is the profile and what differs from it (SPEC 14).
type LimitsConfig struct {
	Profile              string `yaml:"profile"`
	EffectRecords        int64  `yaml:"effect_records"`
	LiveBytes            Size   `yaml:"live_bytes"`
	RecordBytes          Size   `yaml:"record_bytes"`
	LogBytes             Size   `yaml:"log_bytes"`
	PreparedPerPrincipal int64  `yaml:"prepared_per_principal"`
	RequestsInFlight     int64  `yaml:"requests_in_flight"`
}

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30

	// maxRecordBytes keeps an event of the largest kind within one entry of 512 KiB.
	maxRecordBytes = 256 * kib
	minLogBytes    = 1 * mib
	maxRecords     = 100_000_000
)

// LoadConfig reads effectd.yaml, which may be missing, and fills in the defaults.
func (h *Home) LoadConfig() (Config, error) {
	text, err := os.ReadFile(h.ConfigFile())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	c, err := ParseConfig(h.ConfigFile(), text)
	for _, file := range []*string{&c.TLS.Cert, &c.TLS.Key, &c.TLS.CA} {
		if *file != "" && !filepath.IsAbs(*file) {
			*file = filepath.Join(h.ConfigDir(), *file)
		}
	}
	return c, err
}

// ParseConfig reads a configuration. An unknown key, or a value of the wrong
// kind, is an error that names file, line and key. file is only a name.
func ParseConfig(file string, text []byte) (Config, error) {
	var c Config
	if err := ParseYAML(file, text, &c); err != nil {
		return Config{}, err
	}
	if err := c.Validate(); err != nil {
		return Config{}, fmt.Errorf("%s: %w", file, err)
	}
	return c.WithDefaults(), nil
}

// Validate reports every fault at once.
func (c Config) Validate() error {
	var faults []error
	within := func(key string, v, least, most int64) {
		if v != 0 && (v < least || v > most) {
			faults = append(faults, fmt.Errorf("%s: want %d to %d", key, least, most))
		}
	}
	if c.Node != "" && !events.ValidToken(c.Node) {
		faults = append(faults, errors.New("node: want 1 to 64 characters of a-z 0-9 - _"))
	}
	if l := c.Limits; l.Profile != "" && l.Profile != localProfile {
		faults = append(faults, errors.New("limits.profile: want local"))
	}
	within("limits.effect_records", c.Limits.EffectRecords, 1, maxRecords)
	within("limits.live_bytes", int64(c.Limits.LiveBytes), mib, 1<<40)
	within("limits.record_bytes", int64(c.Limits.RecordBytes), 4*kib, maxRecordBytes)
	within("limits.log_bytes", int64(c.Limits.LogBytes), minLogBytes, 1<<50)
	within("limits.prepared_per_principal", c.Limits.PreparedPerPrincipal, 1, maxRecords)
	within("limits.requests_in_flight", c.Limits.RequestsInFlight, 1, 1<<20)
	for key, v := range map[string]Size{"disk_reserve": c.DiskReserve, "spool_bytes": c.SpoolBytes, "feed_bytes": c.FeedBytes,
		"denial_bytes": c.DenialBytes, "request_bytes": c.RequestBytes, "payload_bytes": c.PayloadBytes} {
		within(key, int64(v), mib, 1<<50)
	}
	for _, d := range []struct {
		key         string
		v           Duration
		least, most time.Duration
	}{
		{"permit_ttl", c.PermitTTL, time.Second, 365 * 24 * time.Hour},
		{"shutdown_budget", c.ShutdownBudget, time.Millisecond, time.Hour},
		{"scrub_every", c.ScrubEvery, time.Minute, 365 * 24 * time.Hour},
	} {
		if v := time.Duration(d.v); v != 0 && (v < d.least || v > d.most) {
			faults = append(faults, fmt.Errorf("%s: want %v to %v", d.key, d.least, d.most))
		}
	}
	within("replicas", int64(c.Replicas), 1, 5)
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		faults = append(faults, errors.New("tls: cert and key go together"))
	}
	return errors.Join(faults...)
}

const localProfile = "local"

// WithDefaults replaces every zero by its default.
func (c Config) WithDefaults() Config {
	if c.Node == "" {
		c.Node = hostName()
	}
	l := &c.Limits
	if l.Profile == "" {
		l.Profile = localProfile
	}
	or(&l.EffectRecords, 10_000)
	or(&l.LiveBytes, 64*mib)
	or(&l.RecordBytes, 64*kib)
	or(&l.LogBytes, 1*gib)
	or(&l.PreparedPerPrincipal, 1000)
	or(&l.RequestsInFlight, 1024)
	or(&c.PermitTTL, Duration(300*time.Second))
	or(&c.ShutdownBudget, Duration(30*time.Second))
	or(&c.ScrubEvery, Duration(24*time.Hour))
	or(&c.DiskReserve, 256*mib)
	or(&c.SpoolBytes, 64*mib)
	or(&c.FeedBytes, 1*gib)
	or(&c.DenialBytes, 64*mib)
	or(&c.RequestBytes, 256*mib)
	or(&c.PayloadBytes, 1*gib)
	or(&c.Replicas, 3)
	return c
}

func or[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// LedgerLimits are the limits as the log records them.
func (c Config) LedgerLimits() events.Limits {
	c = c.WithDefaults()
	return events.Limits{
		Profile: c.Limits.Profile, EffectRecords: c.Limits.EffectRecords, LiveBytes: int64(c.Limits.LiveBytes),
		RecordBytes: int64(c.Limits.RecordBytes), LogBytes: int64(c.Limits.LogBytes),
		PreparedPerPrincipal: c.Limits.PreparedPerPrincipal, RequestsInFlight: c.Limits.RequestsInFlight,
		PermitTTLMS: time.Duration(c.PermitTTL).Milliseconds(),
	}
}

// hostName is the host's name as a token.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "node"
	}
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	if name = name[:min(len(name), 64)]; !events.ValidToken(name) {
		return "node"
	}
	return name
}
