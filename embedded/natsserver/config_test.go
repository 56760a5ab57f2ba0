package natsserver

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

func serviceKeys(t *testing.T) (map[Service]nkeys.KeyPair, map[Service]string) {
	t.Helper()
	seed, err := newPerson(t, "main", "x", events.RoleProducer).key.Seed()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := ServiceKeys(seed)
	if err != nil {
		t.Fatal(err)
	}
	pubs, err := ServicePublicKeys(keys)
	if err != nil {
		t.Fatal(err)
	}
	return keys, pubs
}

// runConfig runs an external server from the printed configuration alone.
func runConfig(t *testing.T, l Layout) *server.Server {
	t.Helper()
	text, err := Config(l)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte("listen: 127.0.0.1:-1\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	o.NoSigs, o.NoLog = true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("not ready")
	}
	return s
}

// The printed configuration does what the embedded server does: services,
// requests, denials, forged replies.
func TestConfigRuns(t *testing.T) {
	people := everyRole(t)
	keys, pubs := serviceKeys(t)
	l := Layout{Services: pubs, StoreDir: t.TempDir()}
	for _, p := range people {
		l.Users = append(l.Users, p.User)
	}
	s := runConfig(t, l)
	if !s.JetStreamConfig().SyncAlways {
		t.Error("does not fsync")
	}
	conn := func(svc Service) *nats.Conn {
		nc, err := Dial(t.Context(), s.ClientURL(), svc, keys[svc], quiet())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	log := makeStreams(t, conn(Ledger))
	serveAPI(t, conn(Answer))
	producer, auditor, executor := dialAs(t, s.ClientURL(), people['P']), dialAs(t, s.ClientURL(), people['U']), dialAs(t, s.ClientURL(), people['E'])
	if _, err := producer.Request(wire.APISubject("main", "producer", wire.EffectSubmit), nil, patience); err != nil {
		t.Error(err)
	}
	producer.forbidden(t, "log", func() error { return producer.Publish(wire.LogSubject, nil) })
	producer.forbidden(t, "inbox", func() error { _, err := producer.SubscribeSync("_INBOX.>"); return err })
	if err := producer.PublishRequest("effects.requests.main.producer", wire.LogSubject, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := producer.Request("effects.requests.main.producer", nil, patience); err != nil {
		t.Error(err)
	}
	js, err := jetstream.New(auditor.Conn)
	if err != nil {
		t.Fatal(err)
	}
	st, err := js.Stream(t.Context(), wire.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.GetMsg(t.Context(), 1); err != nil {
		t.Error(err)
	}
	auditor.unrefused(t, "reads")
	auditor.forbidden(t, "delete", func() error { return auditor.Publish("$JS.API.STREAM.DELETE.EFFECTS", nil) })
	if _, err := executor.QueueSubscribe("effects.exec.main.charge", "q", func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		t.Fatal(err)
	}
	executor.unrefused(t, "own operation")
	if _, err := conn(Dispatch).Request("effects.exec.main.charge", nil, patience); err != nil {
		t.Error(err)
	}
	if info, err := log.Info(t.Context()); err != nil || info.State.Msgs != 2 {
		t.Errorf("log holds %d messages (%v), want 2", info.State.Msgs, err)
	}
}

// Every user and service has the permissions of the embedded server, exactly.
func TestConfigHasTheSamePermissions(t *testing.T) {
	_, pubs := serviceKeys(t)
	want := map[string]*server.Permissions{}
	var l Layout
	l.Services = pubs
	for _, svc := range Services() {
		want[pubs[svc]] = PermissionsOfService(svc).enforced()
	}
	for _, p := range everyRole(t) {
		l.Users = append(l.Users, p.User)
		want[p.PublicKey] = PermissionsOf(p.User).enforced()
	}
	text, err := Config(l)
	if err != nil {
		t.Fatal(err)
	}
	o := &server.Options{}
	if err := o.ProcessConfigString(text); err != nil {
		t.Fatal(err)
	}
	if len(o.Nkeys) != len(want) {
		t.Fatalf("%d users, want %d", len(o.Nkeys), len(want))
	}
	for _, u := range o.Nkeys {
		if !reflect.DeepEqual(u.Permissions, want[u.Nkey]) {
			t.Errorf("%s: %+v, want %+v", u.Nkey, u.Permissions, want[u.Nkey])
		}
		if u.Permissions.Response != nil {
			t.Errorf("%s: allow_responses", u.Nkey)
		}
	}
}

func TestConfigRefusals(t *testing.T) {
	_, pubs := serviceKeys(t)
	if _, err := Config(Layout{Services: pubs, Users: []events.User{{Tenant: "main", Principal: "a b", Role: events.RoleProducer}}}); err == nil {
		t.Error("bad user printed")
	}
	if _, err := Config(Layout{}); err == nil {
		t.Error("no service keys")
	}
}

// An empty list allows nothing, though the server reads an empty subscribe list as all.
func TestNothingAllowedIsNothing(t *testing.T) {
	p := PermissionsOf(events.User{Tenant: "main", Principal: "p", Role: "root"})
	if len(p.Publish)+len(p.Subscribe) != 0 {
		t.Errorf("unknown role: %+v", p)
	}
	e := p.enforced()
	if e.Subscribe.Deny[0] != ">" || e.Publish.Deny[0] != ">" {
		t.Errorf("%+v", e)
	}
}

// Service keys differ from each other and are the same for the same seed.
func TestServiceKeys(t *testing.T) {
	seed, err := newPerson(t, "main", "x", events.RoleProducer).key.Seed()
	if err != nil {
		t.Fatal(err)
	}
	own, err := nkeys.FromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}
	root, err := own.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	var first map[Service]string
	for range 2 {
		keys, err := ServiceKeys(seed)
		if err != nil {
			t.Fatal(err)
		}
		pubs, err := ServicePublicKeys(keys)
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !reflect.DeepEqual(first, pubs) {
			t.Error("keys change")
		}
		first = pubs
	}
	if first[Ledger] != root || first[Answer] == root || first[Answer] == first[Dispatch] || first[Dispatch] == root {
		t.Errorf("%v", first)
	}
	if _, err := ServiceKeys([]byte("SAxx")); err == nil {
		t.Error("bad seed accepted")
	}
}
