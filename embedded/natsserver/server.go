package natsserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/effectd/effectd/events"
)

// Options is how the server is run. Zero means default.
type Options struct {
	StoreDir   string        // required: streams are kept below it
	Host       string        // default 127.0.0.1
	Port       int           // 0 picks a free one
	ServerName string        // default effectd
	MaxStore   int64         // bytes of all streams together, default 16 GiB
	MaxMemory  int64         // bytes of memory streams, default 64 MiB
	Users      []events.User // who may connect at first
	TLS        *tls.Config   // nil: none
	Logger     *slog.Logger  // default slog.Default()
	ReadyIn    time.Duration // longest time to become ready, default 30 s
}

const (
	defaultHost      = "127.0.0.1"
	defaultName      = "effectd"
	defaultMaxStore  = 16 << 30
	defaultMaxMemory = 64 << 20
	defaultReadyIn   = 30 * time.Second
)

// Validate reports every fault at once.
func (o Options) Validate() error {
	var faults []error
	if o.StoreDir == "" {
		faults = append(faults, errors.New("store directory: missing"))
	}
	if o.Port < 0 || o.Port > 65535 {
		faults = append(faults, errors.New("port: want 0 to 65535"))
	}
	if o.MaxStore < 0 || o.MaxMemory < 0 || o.ReadyIn < 0 {
		faults = append(faults, errors.New("limits: negative"))
	}
	if err := CheckUsers(o.Users); err != nil {
		faults = append(faults, err)
	}
	if len(faults) > 0 {
		return fmt.Errorf("nats server: %w", errors.Join(faults...))
	}
	return nil
}

// Server is the NATS server in this process.
type Server struct {
	nats *server.Server
	gate *gate
	keys map[Service]nkeys.KeyPair
	log  *slog.Logger
}

// Start runs the server until [Server.Shutdown] and returns when JetStream
// answers. It never creates a stream.
func Start(ctx context.Context, o Options) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	s := &Server{gate: &gate{}, log: o.Logger}
	if err := s.build(o); err != nil {
		s.stop()
		return nil, fmt.Errorf("nats server: %w", err)
	}
	log := &serverLog{log: o.Logger}
	s.nats.SetLoggerV2(log, o.Logger.Enabled(ctx, slog.LevelDebug), false, false)
	s.nats.Start()
	ctx, cancel := context.WithTimeout(ctx, o.ReadyIn)
	defer cancel()
	err := log.err()
	if err == nil {
		err = s.ready(ctx)
	}
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("nats server: start: %w", err)
	}
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.Host == "" {
		o.Host = defaultHost
	}
	if o.ServerName == "" {
		o.ServerName = defaultName
	}
	if o.MaxStore == 0 {
		o.MaxStore = defaultMaxStore
	}
	if o.MaxMemory == 0 {
		o.MaxMemory = defaultMaxMemory
	}
	if o.ReadyIn == 0 {
		o.ReadyIn = defaultReadyIn
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// build makes the server, its accounts and the first table; nothing listens yet.
func (s *Server) build(o Options) error {
	so := &server.Options{}
	if err := so.ProcessConfigString(accountsText(nil)); err != nil {
		return err
	}
	so.Host, so.Port = o.Host, o.Port
	if o.Port == 0 {
		so.Port = server.RANDOM_PORT
	}
	so.ServerName = o.ServerName
	so.NoSigs = true
	so.MaxPayload = MaxPayload
	so.JetStream, so.StoreDir, so.SyncAlways = true, o.StoreDir, true
	so.JetStreamMaxStore, so.JetStreamMaxMemory = o.MaxStore, o.MaxMemory
	so.DisableJetStreamBanner = true
	so.CustomClientAuthentication, so.AlwaysEnableNonce = s.gate, true
	if o.TLS != nil {
		so.TLS, so.TLSConfig, so.TLSTimeout = true, o.TLS, 5
	}
	var err error
	if s.nats, err = server.NewServer(so); err != nil {
		return err
	}
	return s.admit(o.Users)
}

// admit fills the gate: fresh keys for the services, and the first users.
func (s *Server) admit(users []events.User) error {
	root, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	defer root.Wipe()
	seed, err := root.Seed()
	if err != nil {
		return err
	}
	defer clear(seed)
	if s.keys, err = ServiceKeys(seed); err != nil {
		return err
	}
	s.gate.accounts, s.gate.services = map[string]*server.Account{}, map[string]*identity{}
	for _, name := range []string{LedgerAccount, UsersAccount} {
		if s.gate.accounts[name], err = s.nats.LookupAccount(name); err != nil {
			return err
		}
	}
	for svc, key := range s.keys {
		pub, err := key.PublicKey()
		if err != nil {
			return err
		}
		s.gate.services[pub] = &identity{key: key, account: s.gate.accounts[svc.account()],
			permissions: PermissionsOfService(svc).enforced(), local: true}
	}
	_, err = s.gate.set(users)
	return err
}

// ready waits until clients can connect and JetStream answers: the server calls
// it enabled before that.
func (s *Server) ready(ctx context.Context) error {
	deadline, _ := ctx.Deadline()
	if !s.nats.ReadyForConnections(time.Until(deadline)) {
		return errors.New("not ready for connections in time")
	}
	nc, err := s.Conn(ctx, Ledger)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	if _, err := js.AccountInfo(ctx); err != nil {
		return fmt.Errorf("jetstream: %w", err)
	}
	return nil
}

// ClientURL is where clients connect.
func (s *Server) ClientURL() string { return s.nats.ClientURL() }

func (s *Server) stop() {
	if s.nats != nil {
		s.nats.Shutdown()
		s.nats.WaitForShutdown()
	}
}

// Shutdown stops the server and waits for it, or for ctx. Close the connections
// first: what is in flight is dropped. Calling it again waits again.
func (s *Server) Shutdown(ctx context.Context) error {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.stop()
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("nats server: shutdown: %w", context.Cause(ctx))
	}
}
