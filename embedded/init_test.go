package embedded_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

// begunOn is a ledger whose init waits for its server, which runs.
func begunOn(t *testing.T) (*rig, *external) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	_, err := embedded.Init(t.Context(), embedded.InitOptions{Data: dir, NATSURL: "nats://127.0.0.1:1", Logger: logger()})
	if !errors.Is(err, embedded.ErrServer) {
		t.Fatal(err)
	}
	h, err := home.OpenBegun(dir)
	if err != nil {
		t.Fatal(err)
	}
	x := newExternal(t, h, t.TempDir())
	r := &rig{TB: t, dir: dir, opts: embedded.Options{Data: dir, NATSURL: x.server.ClientURL(), NKeyFile: x.keyFile, Logger: logger()}}
	t.Cleanup(r.stop)
	return r, x
}

func (r *rig) init() (embedded.InitResult, error) {
	return embedded.Init(r.Context(), embedded.InitOptions{Data: r.dir, NATSURL: r.opts.NATSURL, Logger: logger()})
}

// Whatever cuts an init on an external server, the next one goes on with the same
// ledger: its stream, keys and entries.
func TestInitOnAnExternalServer(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*rig, *external, events.LedgerID){
		"nothing": func(*rig, *external, events.LedgerID) {},
		"the answer of the server": func(_ *rig, x *external, id events.LedgerID) {
			if _, err := eventlog.Create(x.Context(), x.connect(), eventlog.Config{LedgerID: id, Replicas: 1}); err != nil {
				x.Fatal(err)
			}
		},
		"all but the end": func(r *rig, _ *external, _ events.LedgerID) {
			if _, err := r.init(); err != nil {
				r.Fatal(err)
			}
			if err := os.Rename(filepath.Join(r.dir, "ledger.json"), filepath.Join(r.dir, "init-unfinished")); err != nil {
				r.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			r, x := begunOn(t)
			if _, err := r.init(); !errors.Is(err, embedded.ErrReplicas) {
				t.Fatalf("three copies on one server: %v", err)
			}
			r.write("effectd.yaml", "replicas: 1\n")
			h, err := home.OpenBegun(r.dir)
			if err != nil {
				t.Fatal(err)
			}
			cut(r, x, h.LedgerID())
			made, err := r.init()
			if err != nil || made.LedgerID != string(h.LedgerID()) || made.NKeyFile != x.keyFile {
				t.Fatalf("%+v %v, began as %s", made, err, h.LedgerID())
			}
			if _, err := r.init(); !errors.Is(err, home.ErrExists) {
				t.Fatal(err)
			}
			r.write("operations/charge.yml", strings.ReplaceAll(chargeContract, "URL", s.URL))
			r.start()
			r.openTask("shop", 100)
			settledAs(t, r.submit("r", "c"), events.OutcomeSucceeded)
			s.served(t, 1)
			r.stop()
			folded(t, readAll(t, x.log(h.LedgerID())))
			r.opts.NATSURL = ""
			if _, err := embedded.Start(t.Context(), r.opts); err == nil || !strings.Contains(err.Error(), "external server") {
				t.Fatalf("without its server: %v", err)
			}
		})
	}
}

// The stream of another ledger is never touched.
func TestInitWhereAnotherLedgerIs(t *testing.T) {
	t.Parallel()
	r, x := begunOn(t)
	r.write("effectd.yaml", "replicas: 1\n")
	made, err := r.init()
	if err != nil {
		t.Fatal(err)
	}
	log := x.log(events.LedgerID(made.LedgerID))
	before, err := log.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := embedded.InitOptions{Data: filepath.Join(t.TempDir(), "other"), NATSURL: r.opts.NATSURL, NKeyFile: x.keyFile, Logger: logger()}
	for range 2 {
		if _, err := embedded.Init(t.Context(), other); !errors.Is(err, eventlog.ErrExists) {
			t.Fatal(err)
		}
	}
	if after, err := log.Status(t.Context()); err != nil || after != before {
		t.Errorf("was %+v, is %+v, %v", before, after, err)
	}
	r.start()
	if ready := r.node.Ready(); !ready.Trusted {
		t.Errorf("%+v", ready)
	}
}

// A server that asks nobody for a key enforces nothing.
func TestInitOnAnOpenServer(t *testing.T) {
	t.Parallel()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	x := &external{TB: t, server: srv}
	t.Cleanup(x.stop)
	srv.Start()
	if !srv.ReadyForConnections(patience) {
		t.Fatal("the server is not ready")
	}
	_, err = embedded.Init(t.Context(), embedded.InitOptions{Data: filepath.Join(t.TempDir(), "data"), NATSURL: srv.ClientURL(), Logger: logger()})
	if !errors.Is(err, embedded.ErrServer) {
		t.Fatal(err)
	}
	conn, err := nats.Connect(srv.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Stream(t.Context(), wire.LogStream); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the stream: %v", err)
	}
}
