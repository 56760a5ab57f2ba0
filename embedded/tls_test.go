package embedded_test

import (
	"bufio"
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/embedded/certtest"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// trusting connects as a user who trusts an authority.
func (r *rig) trusting(who string, opts ...nats.Option) (*client.Client, error) {
	r.Helper()
	c, err := client.Dial(r.node.Ready().NATSURL, filepath.Join(r.dir, "keys", who+".nk"), "main", events.Principal(who), opts...)
	if err == nil {
		r.Cleanup(c.Close)
	}
	return c, err
}

// encrypted is a node whose users connect with TLS.
func encrypted(t testing.TB, s *service, ca *certtest.Authority) *rig {
	t.Helper()
	r := newRig(t, s)
	ca.Issue(t, r.dir, "ledger.test", time.Now().Add(time.Hour))
	r.write("effectd.yaml", "tls: {cert: server.pem, key: server.key}\n")
	r.start()
	return r
}

// A listener with TLS takes no other connection, and a client only trusts the
// certificate that it has reason to.
func TestTLS(t *testing.T) {
	t.Parallel()
	s, ca := newService(t), certtest.New(t)
	r := encrypted(t, s, ca)
	where, err := url.Parse(r.node.Ready().NATSURL)
	if err != nil || where.Scheme != "tls" {
		t.Fatal(where, err)
	}
	if _, err := r.trusting("producer"); !errors.Is(err, client.ErrUnreachable) || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("without the authority: %v", err)
	}
	if _, err := r.trusting("producer", nats.RootCAs(certtest.New(t).File)); !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("with another: %v", err)
	}
	operator, err := r.trusting("operator", nats.RootCAs(ca.File))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := operator.TaskOpen(t.Context(), taskRequest("shop", 100)); err != nil {
		t.Fatal(err)
	}
	producer, err := r.trusting("producer", nats.RootCAs(ca.File))
	if err != nil {
		t.Fatal(err)
	}
	e, err := producer.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "c", 5), Wait: wire.WaitTerminal})
	if err != nil || e.Outcome != events.OutcomeSucceeded {
		t.Fatal(err, show(e))
	}
	plain, err := net.Dial("tcp", where.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if err := plain.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Write([]byte("CONNECT {\"verbose\":true}\r\nPING\r\n")); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(plain); lines.Scan(); {
		if text := lines.Text(); text == "PONG" || text == "+OK" {
			t.Errorf("a connection without TLS is served: %s", text)
		}
	}
	s.served(t, 1)
}

// A renewed certificate is served after a reload, connections go on, and one that
// cannot be read changes nothing.
func TestTLSRenewal(t *testing.T) {
	t.Parallel()
	first, second := certtest.New(t), certtest.New(t)
	r := encrypted(t, newService(t), first)
	before, err := r.trusting("auditor", nats.RootCAs(first.File), nats.NoReconnect())
	if err != nil {
		t.Fatal(err)
	}
	second.Issue(t, r.dir, "renewed.test", time.Now().Add(time.Hour))
	r.reload()
	if _, err := r.trusting("auditor", nats.RootCAs(first.File)); err == nil {
		t.Error("the old certificate is served")
	}
	if _, err := r.trusting("auditor", nats.RootCAs(second.File)); err != nil {
		t.Error(err)
	}
	r.write("server.pem", "damaged")
	r.write("policy.cedar", observeOnly)
	if err := r.node.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "tls") {
		t.Errorf("reloaded: %v", err)
	}
	if _, err := r.trusting("auditor", nats.RootCAs(second.File)); err != nil {
		t.Error(err)
	}
	if s, err := before.Status(t.Context()); err != nil || s.PolicyRevision != 1 {
		t.Errorf("%+v %v", s, err)
	}
}

// A node on an external server with TLS trusts the authority in its configuration.
func TestExternalTLS(t *testing.T) {
	t.Parallel()
	s, ca := newService(t), certtest.New(t)
	r := running(t, s)
	r.stop()
	dir := t.TempDir()
	ca.Issue(t, dir, "nats.test", time.Now().Add(time.Hour))
	config := "replicas: 1\ntls: {cert: " + filepath.Join(dir, "server.pem") + ", key: " + filepath.Join(dir, "server.key")
	r.write("effectd.yaml", config+"}\n")
	x := newExternal(r, r.home(), r.home().NATSDir())
	r.opts.NATSURL, r.opts.NKeyFile = x.server.ClientURL(), x.keyFile
	if _, err := embedded.Start(t.Context(), r.opts); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Fatalf("without the authority: %v", err)
	}
	r.write("effectd.yaml", config+", ca: "+ca.File+"}\n")
	r.start()
	if got := r.node.Ready(); !got.Trusted || got.NATSURL != x.server.ClientURL() || !strings.HasPrefix(got.NATSURL, "tls://") {
		t.Errorf("%+v", got)
	}
	producer, err := r.trusting("producer", nats.RootCAs(ca.File))
	if err != nil {
		t.Fatal(err)
	}
	e, err := producer.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "c", 5), Wait: wire.WaitTerminal})
	if err != nil || e.Outcome != events.OutcomeSucceeded {
		t.Fatal(err, show(e))
	}
}
