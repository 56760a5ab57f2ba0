package natsserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// N1: no connection without the signature of a known nkey.
func TestConnectionsNeedAKnownKey(t *testing.T) {
	known, stranger := newPerson(t, "main", "p", events.RoleProducer), newPerson(t, "main", "p", events.RoleProducer)
	s := startServer(t, known)
	ledgerKey, err := s.keys[Ledger].PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string][]nats.Option{
		"nothing":                  nil,
		"password":                 {nats.UserInfo("main", "p")},
		"token":                    {nats.Token(known.PublicKey)},
		"unknown key":              {nats.Nkey(stranger.PublicKey, stranger.key.Sign)},
		"key of another, own sign": {nats.Nkey(known.PublicKey, stranger.key.Sign)},
		"no signature":             {nats.Nkey(known.PublicKey, func([]byte) ([]byte, error) { return nil, nil })},
		"signature over nothing":   {nats.Nkey(known.PublicKey, func([]byte) ([]byte, error) { return known.key.Sign(nil) })},
		"ledger's key over TCP":    {nats.Nkey(ledgerKey, s.keys[Ledger].Sign)},
	} {
		nc, err := nats.Connect(s.ClientURL(), append(opts, nats.NoReconnect())...)
		if err == nil {
			nc.Close()
		}
		if !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v, want an authorization violation", name, err)
		}
	}
	dialAs(t, s.ClientURL(), known).unrefused(t, "known key")
}

// N7: users come, go and change while others work.
func TestUsersChangeUnderTraffic(t *testing.T) {
	stays, goes := newPerson(t, "main", "stays", events.RoleProducer), newPerson(t, "main", "goes", events.RoleProducer)
	comes, changes := newPerson(t, "main", "comes", events.RoleProducer), newPerson(t, "main", "changes", events.RoleProducer)
	s := startServer(t, stays, goes, changes)
	serveAPI(t, serviceConn(t, s, Answer))
	stayer := dialAs(t, s.ClientURL(), stays)
	gone, changed := dialAs(t, s.ClientURL(), goes), dialAs(t, s.ClientURL(), changes)

	var traffic sync.WaitGroup
	var stop atomic.Bool
	for range 4 {
		traffic.Go(func() {
			for !stop.Load() {
				if _, err := stayer.Request(wire.APISubject("main", "stays", wire.EffectGet), nil, patience); err != nil {
					t.Errorf("undisturbed user: %v", err)
					return
				}
			}
		})
	}
	traffic.Go(func() {
		for !stop.Load() { // connects and leaves all the time
			nc, err := nats.Connect(s.ClientURL(), nats.Nkey(stays.PublicKey, stays.key.Sign))
			if err != nil {
				t.Errorf("undisturbed user connects: %v", err)
				return
			}
			nc.Close()
		}
	})
	changes.Role = events.RoleOperator
	for range 10 {
		if err := s.SetUsers(rows(stays, comes, changes)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]*client{"removed": gone, "changed": changed} {
		select {
		case <-c.closed:
		case <-time.After(patience):
			t.Errorf("%s user stays connected", name)
		}
	}
	if nc, err := nats.Connect(s.ClientURL(), nats.Nkey(goes.PublicKey, goes.key.Sign)); err == nil {
		nc.Close()
		t.Error("removed user connects")
	}
	if _, err := dialAs(t, s.ClientURL(), comes).Request(wire.APISubject("main", "comes", wire.EffectSubmit), nil, patience); err != nil {
		t.Errorf("added user: %v", err)
	}
	now := dialAs(t, s.ClientURL(), changes)
	if _, err := now.Request(wire.APISubject("main", "changes", wire.PermitRevoke), nil, patience); err != nil {
		t.Errorf("changed user: %v", err)
	}
	now.forbidden(t, "changed user's old verb", func() error { return now.Publish(wire.APISubject("main", "changes", wire.EffectSubmit), nil) })
	stop.Store(true)
	traffic.Wait()
	stayer.unrefused(t, "undisturbed user")
}

// A bad table is refused whole, with every fault, and changes nothing.
func TestBadTables(t *testing.T) {
	good := newPerson(t, "main", "p", events.RoleProducer)
	s := startServer(t, good)
	c := dialAs(t, s.ClientURL(), good)
	pub := func(svc Service) string {
		p, err := s.keys[svc].PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	notUser, err := account.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	user := func(tenant, principal string, role events.Role, key string, ops ...string) events.User {
		return events.User{Tenant: events.Tenant(tenant), Principal: events.Principal(principal), Role: role, PublicKey: key, Operations: ops}
	}
	other := newPerson(t, "main", "q", events.RoleProducer)
	for name, bad := range map[string][]events.User{
		"reserved tenant":    {user("_", "p", events.RoleProducer, other.PublicKey)},
		"reserved principal": {user("main", "ledger", events.RoleProducer, other.PublicKey)},
		"not a token":        {user("main", "p.q", events.RoleProducer, other.PublicKey)},
		"unknown role":       {user("main", "q", "root", other.PublicKey)},
		"no role":            {user("main", "q", "", other.PublicKey)},
		"account key":        {user("main", "q", events.RoleProducer, notUser)},
		"no key":             {user("main", "q", events.RoleProducer, "")},
		"ledger's key":       {user("main", "q", events.RoleProducer, pub(Ledger))},
		"same key":           {good.User, user("main", "q", events.RoleProducer, good.PublicKey)},
		"same principal":     {good.User, user("main", "p", events.RoleAuditor, other.PublicKey)},
		"producer executes":  {user("main", "q", events.RoleProducer, other.PublicKey, "charge")},
		"wide operation":     {user("main", "q", events.RoleExecutor, other.PublicKey, ">")},
	} {
		if err := s.SetUsers(bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	err = s.SetUsers([]events.User{user("_", "p", "root", "x")})
	for _, part := range []string{"tenant:", "role:", "public_key:"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
	c.unrefused(t, "the table before")
}

// N8, and the server is what was asked for.
func TestStarted(t *testing.T) {
	s := startServer(t)
	js := s.nats.JetStreamConfig()
	if !js.SyncAlways || js.MaxStore != defaultMaxStore || js.MaxMemory != defaultMaxMemory {
		t.Errorf("jetstream: %+v", js)
	}
	nc := serviceConn(t, s, Ledger)
	if nc.MaxPayload() != MaxPayload {
		t.Errorf("max payload %d", nc.MaxPayload())
	}
	log := makeStreams(t, nc)
	j, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Publish(t.Context(), wire.LogSubject, make([]byte, 1<<20)); err != nil {
		t.Errorf("one MiB: %v", err)
	}
	if log.CachedInfo().Config.Storage != jetstream.FileStorage {
		t.Error("not in a file")
	}
}

func TestStreamsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		s, err := Start(t.Context(), Options{StoreDir: dir, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		nc, err := s.Conn(t.Context(), Ledger)
		if err != nil {
			t.Fatal(err)
		}
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: wire.LogStream, Subjects: []string{wire.LogSubject}}); err != nil {
				t.Fatal(err)
			}
		}
		ack, err := js.Publish(t.Context(), wire.LogSubject, nil)
		if err != nil || ack.Sequence != uint64(i+1) {
			t.Fatalf("life %d: %v %v", i, ack, err)
		}
		nc.Close()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A server that cannot start says why and ends nothing but itself.
func TestStartRefused(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		o    Options
		says string
	}{
		"no directory": {t.Context(), Options{}, "store directory"},
		"bad port":     {t.Context(), Options{StoreDir: t.TempDir(), Port: -4}, "port"},
		"port taken":   {t.Context(), Options{StoreDir: t.TempDir(), Port: taken.Addr().(*net.TCPAddr).Port}, "listening on port"},
		"store a file": {t.Context(), Options{StoreDir: file}, "JetStream"},
		"cancelled":    {cancelled, Options{StoreDir: t.TempDir()}, "canceled"},
	} {
		c.o.Logger = quiet()
		s, err := Start(c.ctx, c.o)
		if err == nil {
			_ = s.Shutdown(context.Background())
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

func TestTLS(t *testing.T) {
	cert, pool := selfSigned(t)
	p := newPerson(t, "main", "p", events.RoleProducer)
	s, err := Start(t.Context(), Options{StoreDir: t.TempDir(), Users: rows(p), Logger: quiet(), TLS: &tls.Config{Certificates: []tls.Certificate{cert}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	serveAPI(t, serviceConn(t, s, Answer))
	c := dialAs(t, s.ClientURL(), p, nats.Secure(&tls.Config{RootCAs: pool}))
	if _, err := c.Request(wire.APISubject("main", "p", wire.EffectGet), nil, patience); err != nil {
		t.Error(err)
	}
	if nc, err := nats.Connect("nats://"+strings.TrimPrefix(s.ClientURL(), "tls://"), nats.Nkey(p.PublicKey, p.key.Sign), nats.Secure(&tls.Config{RootCAs: x509.NewCertPool()})); err == nil {
		nc.Close()
		t.Error("unknown certificate accepted")
	}
}

func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}
